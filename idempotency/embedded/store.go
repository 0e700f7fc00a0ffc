package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kdedup/kdedup/idempotency"
)

// Options say where the store is. Only Path is needed.
type Options struct {
	Path          string        // the directory; it is created if it is missing
	SweepInterval time.Duration // between two deletions of expired records; 0: 10 minutes, below 0: never
	Logger        *slog.Logger  // nil: nothing is logged
}

const defaultSweepInterval = 10 * time.Minute

// stripes bounds the locks. Two keys that share one wait for each other's sync.
const stripes = 256

// Store is an idempotency.Store in one directory.
type Store struct {
	db  *pebble.DB
	log *slog.Logger

	// A stripe is held from the reading of a record until its successor is synced, so nobody sees
	// what is not durable.
	locks [stripes]sync.Mutex

	stop       context.CancelFunc
	background sync.WaitGroup
}

var _ idempotency.Store = (*Store)(nil)

// Open opens the directory or makes a new one.
func Open(o Options) (*Store, error) {
	if o.SweepInterval == 0 {
		o.SweepInterval = defaultSweepInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	db, err := pebble.Open(o.Path, &pebble.Options{
		FS:                 vfs.Default,                // named, because the default watches the disk in a goroutine that a failed Open leaves behind
		FormatMajorVersion: pebble.FormatTableFormatV6, // pinned: older releases cannot read a newer one
		Logger:             pebbleLog{o.Logger},
	})
	if err != nil {
		return nil, fmt.Errorf("open idempotency store %s: %w", o.Path, explain(err))
	}
	s := &Store{db: db, log: o.Logger}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	if o.SweepInterval > 0 {
		s.background.Go(func() { s.sweepEvery(ctx, o.SweepInterval) })
	}
	return s, nil
}

// explain adds the remedy to a directory in use.
func explain(err error) error {
	if errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "lock held by current process") {
		return fmt.Errorf("in use; one store per directory, and another kind of store to share it between processes: %w", err)
	}
	return err
}

// Close returns when no goroutine of the store is left. It comes after all other calls.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	if err := s.db.Close(); err != nil {
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
	lock := s.lock(k)
	lock.Lock()
	defer lock.Unlock()
	record, _, err := s.read(k, time.Now())
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("get: embedded: %w", err)
	}
	return record, nil
}

// Swap implements idempotency.Store.
func (s *Store) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record, ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	if ctx.Err() != nil {
		return current, false, fmt.Errorf("swap: embedded: %w", context.Cause(ctx))
	}
	k := recordKey(key)
	lock := s.lock(k)
	lock.Lock()
	defer lock.Unlock()
	now := time.Now()
	current, _, err = s.read(k, now)
	if err == nil && current.Version != old {
		return current, false, nil
	}
	if err == nil {
		err = s.write(k, next, now.Add(ttl))
	}
	if err != nil {
		return idempotency.Record{}, false, fmt.Errorf("swap: embedded: %w", err)
	}
	return idempotency.Record{}, true, nil
}

func (s *Store) lock(key []byte) *sync.Mutex { return &s.locks[xxhash.Sum64(key)%stripes] }

// read returns the record under a key, and whether there is one. Expired ones count as absent.
func (s *Store) read(key []byte, now time.Time) (record idempotency.Record, found bool, err error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return record, false, nil
	}
	if err != nil {
		return record, false, err
	}
	record, expires, err := parseValue(value)
	if err == nil && !now.Before(expires) {
		record = idempotency.Record{}
	}
	return record, err == nil && now.Before(expires), errors.Join(err, closer.Close())
}

// write returns when the record is durable, and with it the entry by which the sweep finds it.
func (s *Store) write(key []byte, record idempotency.Record, expires time.Time) error {
	value, err := appendValue(nil, record, expires)
	if err != nil {
		return err
	}
	batch := s.db.NewBatch()
	err = errors.Join(batch.Set(key, value, nil), batch.Set(endKey(expires, key), nil, nil))
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	return errors.Join(err, batch.Close())
}

// pebbleLog passes Pebble's own lines on.
type pebbleLog struct{ log *slog.Logger }

func (l pebbleLog) Infof(format string, args ...any) {
	l.log.Debug("embedded idempotency store", "message", fmt.Sprintf(format, args...))
}

func (l pebbleLog) Errorf(format string, args ...any) {
	l.log.Warn("embedded idempotency store", "message", fmt.Sprintf(format, args...))
}

// Fatalf must not return: Pebble calls it when it cannot write what it has to.
func (l pebbleLog) Fatalf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	l.log.Error("embedded idempotency store failed", "message", message)
	fmt.Fprintln(os.Stderr, "embedded idempotency store failed:", message)
	os.Exit(1)
}
