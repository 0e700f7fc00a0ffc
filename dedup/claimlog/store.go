package claimlog

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// Options of a store.
type Options struct {
	Opener Opener // leads to the logs; the store closes it
	// a directory for the indexes, used by one process; empty: they are kept in memory
	Path       string
	Only       Only                  // nil: the index keeps all claims
	Wait       time.Duration         // how long a call waits for the log at most; 0: 10 s
	Registerer prometheus.Registerer // nil: no metrics
	Logger     *slog.Logger          // nil: nothing is logged

	times timing           // for tests
	now   func() time.Time // this machine's clock; nil: time.Now
}

// Only says which claims an index keeps. The answers about these are as with all others beside
// them. It is for whoever asks about a few, in memory, beside a process that has the directory.
type Only func(scope string, id dedup.ID) bool

const defaultWait = 10 * time.Second

var defaultTimes = timing{retry: time.Second, save: 10 * time.Second, drop: time.Minute,
	settle: time.Hour, stuck: 30 * time.Second}

// Store is a dedup.Store on claim logs. Any number of processes may share them.
type Store struct {
	o       Options
	process uint64
	blocks  atomic.Uint64 // the number of the last one
	metrics *metrics

	mu     sync.Mutex
	closed bool
	spaces map[string]*space                 // by consumer group
	scopes map[string]map[string]dedup.Scope // that this process has to do with, by group and name
}

var _ dedup.Store = (*Store)(nil)

// Open returns a store. The log of a group is opened when it is first needed.
func Open(o Options) *Store {
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.times == (timing{}) {
		o.times = defaultTimes
	}
	if o.now == nil {
		o.now = time.Now
	}
	return &Store{o: o, process: newProcess(), metrics: newMetrics(o.Registerer),
		spaces: make(map[string]*space), scopes: make(map[string]map[string]dedup.Scope)}
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	spaces := s.spaces
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, space := range spaces {
		wg.Go(space.close)
	}
	wg.Wait()
	if err := s.o.Opener.Close(); err != nil {
		return fmt.Errorf("close store: claim log: %w", err)
	}
	return nil
}

// space returns the log of a scope's group, which begins to be read now if it is not yet.
func (s *Store) space(scope dedup.Scope) (*space, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.noteLocked(scope)
	group := scope.ConsumerGroup
	if s.spaces[group] == nil {
		s.spaces[group] = s.newSpace(group)
	}
	return s.spaces[group], nil
}

func (s *Store) noteLocked(scope dedup.Scope) {
	names := s.scopes[scope.ConsumerGroup]
	if names == nil {
		names = make(map[string]dedup.Scope)
		s.scopes[scope.ConsumerGroup] = names
	}
	names[scope.Name] = scope
}

func (s *Store) scopesOf(group string) []dedup.Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.scopes[group]))
}

// newIndex returns an index, and the clock by which it forgets.
func (s *Store) newIndex(group string) (index, *steadyclock.Clock, error) {
	o := steadyclock.Options{Wall: s.o.now, Logger: s.o.Logger}
	if s.o.Path == "" {
		return newMemoryIndex(), steadyclock.New(o), nil
	}
	dir := s.indexPath(group)
	files, err := openFiles(dir, s.o.Logger)
	if err != nil {
		return nil, nil, err
	}
	clock, err := steadyclock.Open(filepath.Join(dir, "CLOCK"), o)
	if err != nil {
		return nil, nil, errors.Join(err, files.close())
	}
	return files, clock, nil
}

// indexPath is the directory of a group's index. Groups are any text, and hexadecimal digits are
// always the name of a directory.
func (s *Store) indexPath(group string) string {
	return filepath.Join(s.o.Path, hex.EncodeToString([]byte(group)))
}

// Claim implements dedup.Store.
func (s *Store) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	if len(claims) == 0 {
		return answers, nil
	}
	if err := s.claim(ctx, scope, claims, answers); err != nil {
		return answers, fmt.Errorf("claim %d ids: claim log: %w", len(claims), err)
	}
	return answers, nil
}

// claim goes on with the IDs that were owned when it began and free when it was answered.
func (s *Store) claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, answers []dedup.Answer,
) error {
	return s.do(ctx, scope, func(ctx context.Context, space *space) error {
		open := make([]int32, len(claims))
		for i := range open {
			open[i] = int32(i)
		}
		for len(open) > 0 {
			c := &call{scope: scope, keep: scope.TTL, claims: claims, answers: answers}
			if err := s.attempt(ctx, space, c, open); err != nil {
				return err
			}
			open = slices.DeleteFunc(open, func(i int32) bool {
				return answers[i].Outcome != dedup.Undecided
			})
		}
		return nil
	})
}

// attempt makes the blocks for those claims of a call that are open, and waits until they are
// decided.
func (s *Store) attempt(ctx context.Context, space *space, c *call, open []int32) error {
	r, err := space.current(ctx)
	if err != nil {
		return err
	}
	if err := LongEnough(r.log, c.keep); err != nil {
		return err
	}
	if err := space.carry(ctx, r, c.scope); err != nil {
		return err
	}
	c.parts = nil
	for shard, at := range split(r.machine.agreed, c.claims, open) {
		if len(at) == 0 {
			continue
		}
		if err := space.prepare(r, c, shard, at); err != nil {
			return err
		}
	}
	return space.send(ctx, r, c)
}

// LongEnough refuses a log that would forget claims of this ttl before they end.
func LongEnough(log Log, ttl time.Duration) error {
	if kept := log.Retention(); kept > 0 && kept < ttl+Margin {
		return fmt.Errorf("the log keeps blocks for %v, and must for at least %v, the ttl and %v "+
			"more; raise its retention", kept, ttl+Margin, Margin)
	}
	return nil
}

// do gives a call its time and the log of its scope.
func (s *Store) do(
	ctx context.Context, scope dedup.Scope, call func(context.Context, *space) error,
) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	space, err := s.space(scope)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Wait,
		fmt.Errorf("the log did not answer within %v: %w", s.o.Wait, context.DeadlineExceeded))
	defer cancel()
	return call(ctx, space)
}

// split says which of the open claims are for which shard.
func split(a agreement, claims []dedup.Claim, open []int32) [][]int32 {
	shards := make([][]int32, a.Shards)
	each := len(open)/a.Shards + len(open)/a.Shards/8 + 4
	for _, i := range open {
		shard := a.Key.shardOf(string(claims[i].ID), a.Shards)
		if shards[shard] == nil {
			shards[shard] = make([]int32, 0, each)
		}
		shards[shard] = append(shards[shard], i)
	}
	return shards
}

// head begins the next block of this process.
func (s *space) head(r *reading, scope dedup.Scope) head {
	return head{version: s.writing.version(), log: r.machine.agreed.ID,
		id:      blockID{s.store.process, s.store.blocks.Add(1)},
		written: s.store.o.now().UnixMilli(), scope: scope.Name}
}

// Lookup implements dedup.Store.
func (s *Store) Lookup(
	ctx context.Context, scope dedup.Scope, id dedup.ID,
) (answer dedup.Answer, err error) {
	err = s.do(ctx, scope, func(ctx context.Context, space *space) error {
		answer, err = space.lookup(ctx, scope, id)
		return err
	})
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: claim log: %w", err)
	}
	return answer, nil
}

// Release implements dedup.Store.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	err := s.do(ctx, scope, func(ctx context.Context, space *space) error {
		r, err := space.current(ctx)
		if err != nil {
			return err
		}
		a, h := r.machine.agreed, space.head(r, scope)
		c := &call{scope: scope, keep: scope.TTL}
		c.parts = []*part{{call: c, id: h.id, shard: a.Key.shardOf(string(id), a.Shards),
			block: releaseBlock(h, id)}}
		return space.send(ctx, r, c)
	})
	if err != nil {
		return fmt.Errorf("release an id: claim log: %w", err)
	}
	return nil
}

// Forget implements dedup.Store. The registration goes last: until then the call can be repeated.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	err := s.do(ctx, scope, func(ctx context.Context, space *space) error {
		r, err := space.current(ctx)
		if err != nil {
			return err
		}
		c := &call{scope: scope, keep: scope.TTL}
		for shard := range r.machine.agreed.Shards {
			h := space.head(r, scope)
			c.parts = append(c.parts, &part{call: c, id: h.id, shard: shard, block: forgetBlock(h)})
		}
		if err := space.send(ctx, r, c); err != nil {
			return err
		}
		registry := s.o.Opener.Registry(scope.ConsumerGroup)
		if err := registry.Withdraw(ctx, carriedKey(scope.Name)); err != nil {
			return err
		}
		return registry.Withdraw(ctx, scopeKey(scope))
	})
	if err != nil {
		return fmt.Errorf("forget scope: claim log: %w", err)
	}
	return nil
}

// registration is what the registry keeps of a scope.
type registration struct {
	Buckets   int    `json:"buckets"`
	Extractor string `json:"extractor"`
}

func scopeKey(scope dedup.Scope) string { return "scope/" + scope.Name }

// Register implements dedup.Store.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	text, err := json.Marshal(registration{scope.Buckets, scope.Extractor})
	if err == nil {
		text, err = s.o.Opener.Registry(scope.ConsumerGroup).Decide(ctx, scopeKey(scope), text)
	}
	if err != nil {
		return fmt.Errorf("register scope: claim log: %w", err)
	}
	registered, err := parseRegistration(scope, text)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.noteLocked(scope)
	s.mu.Unlock()
	return dedup.CompareScopes(scope, registered)
}

// Registered implements dedup.Store. It does not read the claims.
func (s *Store) Registered(
	ctx context.Context, scope dedup.Scope,
) (registered dedup.Scope, found bool, err error) {
	text, err := s.o.Opener.Registry(scope.ConsumerGroup).Decided(ctx, scopeKey(scope))
	if err != nil {
		return dedup.Scope{}, false, fmt.Errorf("read scope: claim log: %w", err)
	}
	if text == nil {
		return dedup.Scope{}, false, nil
	}
	registered, err = parseRegistration(scope, text)
	return registered, err == nil, err
}

func parseRegistration(scope dedup.Scope, text []byte) (dedup.Scope, error) {
	var r registration
	if err := json.Unmarshal(text, &r); err != nil {
		return dedup.Scope{},
			errors.Join(fmt.Errorf("read scope %s/%s: claim log: %q is not a registration",
				scope.ConsumerGroup, scope.Name, text), err)
	}
	return dedup.Scope{ConsumerGroup: scope.ConsumerGroup, Name: scope.Name, Buckets: r.Buckets,
		Extractor: r.Extractor}, nil
}
