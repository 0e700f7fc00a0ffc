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
	"strconv"
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
	Keepers    *Keepers              // nil: this process keeps all shards
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

	noting sync.Mutex // held by noteCarried

	mu     sync.Mutex
	closed bool
	logs   map[string]groupLog               // by consumer group
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
	s := &Store{o: o, process: newProcess(), metrics: newMetrics(o.Registerer),
		logs: make(map[string]groupLog), scopes: make(map[string]map[string]dedup.Scope)}
	if o.Keepers != nil {
		o.Keepers.Network.Serve(s.answer)
	}
	return s
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	logs := s.logs
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, log := range logs {
		wg.Go(log.close)
	}
	wg.Wait()
	var err error
	if s.o.Keepers != nil {
		err = s.o.Keepers.Network.Close()
	}
	if err = errors.Join(err, s.o.Opener.Close()); err != nil {
		return fmt.Errorf("close store: claim log: %w", err)
	}
	return nil
}

// groupLog is the log of a group as a process asks it: its own index of all shards (space), or
// those of the keepers of each shard (sharing). A call that ends with an error leaves undecided
// what it did not decide.
type groupLog interface {
	// claim tries once, for those of the claims that are open.
	claim(
		ctx context.Context, scope dedup.Scope, claims []dedup.Claim, answers []dedup.Answer,
		open []int32,
	) error
	// importClaims tries likewise. It notes in settled what needs no further try.
	importClaims(
		ctx context.Context, scope dedup.Scope, claims []dedup.Claim, lives []life,
		answers []dedup.Answer, settled []bool, open []int32,
	) error
	lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error)
	release(ctx context.Context, scope dedup.Scope, id dedup.ID) error
	forget(ctx context.Context, scope dedup.Scope) error
	find(ctx context.Context, scope dedup.Scope, ids []dedup.ID) ([]standing, error)
	// ahead is by how much the log's clock is ahead of this process's.
	ahead(ctx context.Context, scope dedup.Scope) (time.Duration, error)
	// await returns when claims can be decided.
	await(ctx context.Context) error
	state() State
	close()
}

// standing is a claim that holds, by the log's clock.
type standing struct {
	id dedup.ID
	held
	ends int64
}

// groupLog returns the log of a scope's group, which begins to be used now if it is not yet.
func (s *Store) groupLog(scope dedup.Scope) (groupLog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.noteLocked(scope)
	group := scope.ConsumerGroup
	if s.logs[group] == nil && s.o.Keepers == nil {
		s.logs[group] = s.newSpace(group, allShards)
	} else if s.logs[group] == nil {
		s.logs[group] = s.newSharing(group)
	}
	return s.logs[group], nil
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
func (s *Store) newIndex(group string, shard int) (index, *steadyclock.Clock, error) {
	o := steadyclock.Options{Wall: s.o.now, Logger: s.o.Logger}
	if s.o.Path == "" {
		return newMemoryIndex(), steadyclock.New(o), nil
	}
	dir := s.indexPath(group, shard)
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

// indexPath is the directory of a group's index, of all shards or of one. Groups are any text, and
// hexadecimal digits are always the name of a directory.
func (s *Store) indexPath(group string, shard int) string {
	path := filepath.Join(s.o.Path, hex.EncodeToString([]byte(group)))
	if shard == allShards {
		return path
	}
	return filepath.Join(path+shardsSuffix, strconv.Itoa(shard))
}

// shardsSuffix is behind the name of the directory with the indexes of single shards.
const shardsSuffix = ".shards"

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
	return s.do(ctx, scope, func(ctx context.Context, log groupLog) error {
		open := make([]int32, len(claims))
		for i := range open {
			open[i] = int32(i)
		}
		for len(open) > 0 {
			if err := log.claim(ctx, scope, claims, answers, open); err != nil {
				return err
			}
			open = slices.DeleteFunc(open, func(i int32) bool {
				return answers[i].Outcome != dedup.Undecided
			})
		}
		return nil
	})
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
	ctx context.Context, scope dedup.Scope, call func(context.Context, groupLog) error,
) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	log, err := s.groupLog(scope)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Wait,
		fmt.Errorf("the log did not answer within %v: %w", s.o.Wait, context.DeadlineExceeded))
	defer cancel()
	return call(ctx, log)
}

// Lookup implements dedup.Store.
func (s *Store) Lookup(
	ctx context.Context, scope dedup.Scope, id dedup.ID,
) (answer dedup.Answer, err error) {
	err = s.do(ctx, scope, func(ctx context.Context, log groupLog) error {
		answer, err = log.lookup(ctx, scope, id)
		return err
	})
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: claim log: %w", err)
	}
	return answer, nil
}

// Release implements dedup.Store.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	err := s.do(ctx, scope, func(ctx context.Context, log groupLog) error {
		return log.release(ctx, scope, id)
	})
	if err != nil {
		return fmt.Errorf("release an id: claim log: %w", err)
	}
	return nil
}

// Forget implements dedup.Store. The registration goes last: until then the call can be repeated.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	err := s.do(ctx, scope, func(ctx context.Context, log groupLog) error {
		if err := log.forget(ctx, scope); err != nil {
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
