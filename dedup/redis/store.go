package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/dedup"
)

// Store is a dedup.Store on Redis. Any number of processes may share its server and key prefix.
type Store struct {
	client  goredis.UniversalClient
	options Options
	metrics *metrics
	watch   *dedup.Watch
	seen    map[string]server // what each server said last, by its address; the watch has it

	mu sync.Mutex // of what eachMaster collects
}

var _ dedup.Store = (*Store)(nil)

// Open connects and refuses servers that cannot keep claims, see the package. With a nil Registerer
// there are no metrics.
func Open(ctx context.Context, options Options, reg prometheus.Registerer) (*Store, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	s := &Store{client: options.client(), options: options}
	servers, err := s.servers(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: redis %v: %w", options.Addresses, err),
			s.client.Close())
	}
	s.seen = make(map[string]server)
	s.note(servers)
	s.metrics = newMetrics(reg)
	s.watch = dedup.NewWatch(watchEvery, s.stillFit)
	return s, nil
}

// Connect returns a client as the store's own, for whoever keeps something else on the servers: it
// refuses servers that evict keys, and repeats nothing by itself. It connects when it is used.
func Connect(options Options) goredis.UniversalClient { return options.client() }

// Setup says what servers there are, after the checks of Open. There is nothing to create.
func Setup(ctx context.Context, options Options, say func(string)) error {
	s, err := Open(ctx, options, nil)
	if err != nil {
		return err
	}
	servers, err := s.servers(ctx)
	slices.SortFunc(servers, func(a, b server) int { return strings.Compare(a.address, b.address) })
	for _, one := range servers {
		appendOnly := map[bool]string{true: "on", false: "off"}[one.appendOnly]
		say(fmt.Sprintf(
			"store redis %s needs no setup: version %s, maxmemory-policy %s, appendonly %s",
			one.address, one.version, one.policy, appendOnly))
	}
	return errors.Join(err, s.Close())
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.watch.Close()
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close store: redis: %w", err)
	}
	return nil
}

// Lookup implements dedup.Store; the driver asks masters only.
func (s *Store) Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	if err := s.watch.Err(); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: redis: %w", err)
	}
	value, err := s.client.Get(ctx, claimPrefix(s.options.KeyPrefix, scope)+string(id)).Bytes()
	if errors.Is(err, goredis.Nil) {
		return dedup.Answer{}, nil
	}
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: redis: %w", s.explain(ctx, err))
	}
	answer, err := parseRecord(value)
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: redis: %w", err)
	}
	return answer, nil
}

// Release implements dedup.Store.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	if err := s.client.Del(
		ctx, claimPrefix(s.options.KeyPrefix, scope)+string(id),
	).Err(); err != nil {
		return fmt.Errorf("release an id: redis: %w", s.explain(ctx, err))
	}
	return nil
}

// eachMaster runs f for every server that takes claims, at the same time.
func (s *Store) eachMaster(
	ctx context.Context, f func(ctx context.Context, master *goredis.Client) error,
) error {
	switch client := s.client.(type) {
	case *goredis.ClusterClient:
		return client.ForEachMaster(ctx, f)
	case *goredis.Client:
		return f(ctx, client)
	}
	return fmt.Errorf("unknown client %T", s.client)
}
