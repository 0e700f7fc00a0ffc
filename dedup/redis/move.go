package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Mover = (*Store)(nil)

// errServersChanged ends an export that may have missed claims: the cursors of a SCAN are those of
// one server, and keys of a cluster that move may be passed over.
var errServersChanged = errors.New("a server has restarted or failed over meanwhile, or slots of " +
	"the cluster have moved; run it again")

// Export implements dedup.Exporter. Like Forget it looks at every key of every master.
func (s *Store) Export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	err := s.export(ctx, scope, page)
	if err != nil {
		return fmt.Errorf("export claims of scope %s/%s: redis: %w", scope.ConsumerGroup,
			scope.Name, s.explain(ctx, err))
	}
	return nil
}

func (s *Store) export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	before, err := s.layout(ctx)
	if err != nil {
		return err
	}
	var (
		one    sync.Mutex // masters are read at the same time
		failed error      // of page, which is not called again
	)
	prefix := claimPrefix(s.options.KeyPrefix, scope)
	err = s.eachMaster(ctx, func(ctx context.Context, master *goredis.Client) error {
		return scan(ctx, master, prefix, func(told []dedup.Standing) error {
			one.Lock()
			defer one.Unlock()
			if failed == nil {
				failed = page(told)
			}
			return failed
		})
	})
	if err != nil {
		return err
	}
	after, err := s.layout(ctx)
	if err == nil && !slices.Equal(before, after) {
		err = errServersChanged
	}
	return err
}

// layout says which servers there are, and what each of them has.
func (s *Store) layout(ctx context.Context) ([]string, error) {
	servers, err := s.servers(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, one := range servers {
		all = append(all, one.address+" "+one.runID)
	}
	if cluster, is := s.client.(*goredis.ClusterClient); is {
		shards, err := cluster.ClusterShards(ctx).Result()
		if err != nil {
			return nil, fmt.Errorf("ask for the cluster's shards: %w", err)
		}
		for _, shard := range shards {
			for _, node := range shard.Nodes {
				if node.Role == "master" {
					all = append(all, fmt.Sprint(shard.Slots, " ", node.ID))
				}
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// scan tells the claims of one server. A key that the server names twice in one go is told once.
func scan(
	ctx context.Context, master *goredis.Client, prefix string, page func([]dedup.Standing) error,
) error {
	pattern := startingWith(prefix)
	for cursor := uint64(0); ; {
		keys, next, err := master.Scan(ctx, cursor, pattern, scanned).Result()
		if err != nil {
			return err
		}
		slices.Sort(keys)
		for some := range slices.Chunk(slices.Compact(keys), dedup.StandingPage) {
			told, err := read(ctx, master, some, len(prefix))
			if err == nil && len(told) > 0 {
				err = page(told)
			}
			if err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// read asks for the claims of some keys, and how long each of them lives.
func read(
	ctx context.Context, client goredis.Cmdable, keys []string, prefix int,
) (told []dedup.Standing, err error) {
	values, left := make([]*goredis.StringCmd, len(keys)), make([]*goredis.DurationCmd, len(keys))
	now := time.Now()
	_, err = client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, key := range keys {
			values[i], left[i] = p.Get(ctx, key), p.PTTL(ctx, key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) { // some have ended
		return nil, err
	}
	for i, key := range keys {
		value, err := values[i].Bytes()
		if errors.Is(err, goredis.Nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lives, err := left[i].Result()
		if err != nil {
			return nil, err
		}
		if lives == -2 {
			continue // it has ended between the two
		}
		if lives < 0 {
			return nil, fmt.Errorf("%w: it never ends", errRecord)
		}
		answer, err := parseRecord(value)
		if err != nil {
			return nil, err
		}
		told = append(told, dedup.Standing{ID: dedup.ID(key[prefix:]), Owner: answer.Owner,
			Fingerprint: answer.Fingerprint, ClaimedAt: answer.ClaimedAt, Ends: now.Add(lives)})
	}
	return told, nil
}

// Find implements dedup.Exporter.
func (s *Store) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) ([]dedup.Standing, error) {
	if len(ids) == 0 {
		return nil, context.Cause(ctx)
	}
	prefix := claimPrefix(s.options.KeyPrefix, scope)
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = prefix + string(id)
	}
	found, err := read(ctx, s.client, keys, len(prefix))
	if err != nil {
		return nil, fmt.Errorf("find %d claims: redis: %w", len(ids), s.explain(ctx, err))
	}
	return found, nil
}

// Import implements dedup.Importer, a pipeline at a time.
func (s *Store) Import(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	for from := 0; from < len(claims); from += s.options.PipelineClaims {
		to := min(from+s.options.PipelineClaims, len(claims))
		if err := s.watch.Err(); err != nil {
			return answers, fmt.Errorf("import %d claims: redis: %w", len(claims), err)
		}
		if err := s.importSome(ctx, scope, claims[from:to], answers[from:to]); err != nil {
			return answers, fmt.Errorf("import %d claims: redis: %w", len(claims), err)
		}
	}
	return answers, nil
}

func (s *Store) importSome(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing, answers []dedup.Answer,
) error {
	var (
		b      = &batch{}
		left   []string
		places []int
		now    = time.Now()
	)
	for i := range claims {
		c := &claims[i]
		milliseconds := c.Left(now).Milliseconds()
		if milliseconds <= 0 {
			continue
		}
		b.claims = append(b.claims,
			dedup.Claim{ID: c.ID, Owner: c.Owner, Fingerprint: c.Fingerprint})
		b.standing = append(b.standing, *c)
		left = append(left, strconv.FormatInt(milliseconds, 10))
		places = append(places, i)
	}
	if len(places) == 0 {
		return context.Cause(ctx)
	}
	b.command(ctx, claimPrefix(s.options.KeyPrefix, scope), "px", func(i int) *string {
		return &left[i]
	})
	got := make([]dedup.Answer, len(places))
	err := s.send(ctx, b, got)
	for i, at := range places {
		answers[at] = got[i]
	}
	return err
}
