package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// Options say where the store is. Only Path is needed.
type Options struct {
	Path string // the directory; it is created if it is missing
	// between two deletions of expired records; 0: 10 minutes, below 0: never
	SweepInterval time.Duration
	Logger        *slog.Logger // nil: nothing is logged

	// For tests; nil or zero: the system's, and hashlog's.
	now          func() time.Time
	elapsed      func() time.Duration
	disk         durable.Disk
	segmentBytes int64
}

const defaultSweepInterval = 10 * time.Minute

func (o Options) withDefaults() Options {
	if o.SweepInterval == 0 {
		o.SweepInterval = defaultSweepInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.disk == nil {
		o.disk = durable.System{}
	}
	return o
}

// stripes bounds the locks. Two keys that share one wait for each other's sync.
const stripes = 256

// Store is an idempotency.Store in one directory.
type Store struct {
	o       Options
	lock    *flock.Flock
	clock   *steadyclock.Clock
	records *hashlog.Log
	ttl     atomic.Int64 // the longest of a record since the store was opened; 0: none was written

	// A stripe is held from the reading of a record until its successor is synced, so nobody sees
	// what is not durable. A client that chooses keys cannot foresee which one it is.
	seed  maphash.Seed
	locks [stripes]sync.Mutex

	stop       context.CancelFunc
	background sync.WaitGroup
}

var _ idempotency.Store = (*Store)(nil)

// Open opens the directory or makes a new one.
func Open(o Options) (*Store, error) {
	s := &Store{o: o.withDefaults(), seed: maphash.MakeSeed()}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open idempotency store %s: %w", o.Path, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	if s.o.SweepInterval > 0 {
		s.background.Go(func() { s.sweepEvery(ctx, s.o.SweepInterval) })
	}
	return s, nil
}

// Close returns when no goroutine of the store is left. It comes after all other calls.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	if err := errors.Join(s.clock.Save(), s.records.Close(), s.lock.Unlock()); err != nil {
		return fmt.Errorf("close idempotency store: %w", err)
	}
	return nil
}

// Get implements idempotency.Store.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	if ctx.Err() != nil {
		return idempotency.Record{}, fmt.Errorf("get: embedded: %w", context.Cause(ctx))
	}
	k := recordKey(key)
	lock := s.stripe(k)
	lock.Lock()
	defer lock.Unlock()
	record, _, err := s.read(k)
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("get: embedded: %w", err)
	}
	return record, nil
}

// Swap implements idempotency.Store.
func (s *Store) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	if ctx.Err() != nil {
		return current, false, fmt.Errorf("swap: embedded: %w", context.Cause(ctx))
	}
	k := recordKey(key)
	lock := s.stripe(k)
	lock.Lock()
	defer lock.Unlock()
	current, ends, err := s.read(k)
	if err == nil && current.Version != old {
		return current, false, nil
	}
	if err == nil {
		err = s.write(ctx, k, next, ttl, ends)
	}
	if err != nil {
		return idempotency.Record{}, false, fmt.Errorf("swap: embedded: %w", err)
	}
	return idempotency.Record{}, true, nil
}

func (s *Store) stripe(key []byte) *sync.Mutex {
	return &s.locks[maphash.Bytes(s.seed, key)%stripes]
}

// read returns the record under a key, and when it ends in the log. Expired ones count as absent.
func (s *Store) read(key []byte) (record idempotency.Record, ends int64, err error) {
	if err := s.err(); err != nil {
		return record, 0, err
	}
	value, ends, err := s.records.NewReader().Get(key)
	if err != nil || value == nil {
		return record, 0, err
	}
	record, expires, err := parseValue(value)
	if err != nil || !s.o.now().Before(expires) {
		return idempotency.Record{}, ends, err
	}
	return record, ends, nil
}

// write returns when the record is durable. In the log it ends no earlier than its predecessor,
// which would be seen again otherwise.
func (s *Store) write(
	ctx context.Context, key []byte, record idempotency.Record, ttl time.Duration, ends int64,
) error {
	s.keepFor(ttl)
	// A wall clock that is behind must not end records early, when it is right again.
	expires := s.clock.Now().Add(ttl)
	value, err := appendValue(nil, record, expires)
	if err != nil {
		return err
	}
	if len(value) > hashlog.MaxLength {
		return fmt.Errorf("a record of %d bytes, at most %d fit; lower MaxResponse", len(value),
			hashlog.MaxLength)
	}
	var batch hashlog.Batch
	batch.Put(key, value, max(ends, endOf(expires)))
	mark, err := s.records.Append(ctx, &batch)
	if err == nil {
		// Not with the caller's context: the stripe is held until it is known whether the record is
		// durable.
		err = s.records.Sync(context.WithoutCancel(ctx), mark)
	}
	if broken := s.err(); broken != nil {
		return broken // it has the remedy
	}
	return err
}

// err is why nothing can be written any more.
func (s *Store) err() error {
	if err := s.records.Err(); err != nil {
		return fmt.Errorf(
			"the store cannot write its files; make room or replace the disk, then restart: %w", err)
	}
	return nil
}
