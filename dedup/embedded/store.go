package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
)

// Options say where the store is. Only Path and Logger are needed.
type Options struct {
	Path          string // the directory; it is created if it is missing
	Logger        *slog.Logger
	Registerer    prometheus.Registerer // nil: no metrics
	SweepInterval time.Duration         // between two deletions of expired claims; 0: 10 minutes, below 0: never

	Now  func() time.Time // nil: time.Now
	FS   vfs.FS           // nil: the operating system's
	Exit func(code int)   // ends the process when the files cannot be written; nil: os.Exit
}

// Store is a dedup.Store in one directory.
type Store struct {
	path    string
	db      *pebble.DB
	now     func() time.Time
	log     *slog.Logger
	pending reservations
	health  health
	logs    *logFS

	mu     sync.Mutex
	scopes map[scopeName]scopeRecord
	last   *syncPoint // of the latest write

	stop       context.CancelFunc
	background sync.WaitGroup
}

var _ dedup.Store = (*Store)(nil)

const defaultSweepInterval = 10 * time.Minute

// Open opens the directory or makes a new one.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{path: o.Path, now: o.Now, log: o.Logger, scopes: make(map[scopeName]scopeRecord), last: synced()}
	s.pending.init()
	s.health.exit = o.Exit
	s.health.log = o.Logger
	s.logs = &logFS{FS: o.FS, health: &s.health}
	o.FS = s.logs
	db, err := pebble.Open(o.Path, databaseOptions(o, &s.health))
	if err != nil {
		return nil, fmt.Errorf("open embedded store %s: %w", o.Path, explain(err))
	}
	s.db = db
	if err := s.loadScopes(); err != nil {
		return nil, fmt.Errorf("open embedded store %s: %w", o.Path, errors.Join(err, db.Close()))
	}
	if o.Registerer != nil {
		registerMetrics(o.Registerer, db)
	}
	s.logs.inUse.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	if o.SweepInterval > 0 {
		s.background.Go(func() { s.sweepEvery(ctx, o.SweepInterval) })
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.SweepInterval == 0 {
		o.SweepInterval = defaultSweepInterval
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	return o
}

// explain adds the remedy to errors that a user can mend.
func explain(err error) error {
	if isLocked(err) {
		return fmt.Errorf("used by another process; one process per directory, use cassandra to share a store: %w", err)
	}
	return err
}

// Lookup implements dedup.Store.
func (s *Store) Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	if err := s.usable(ctx); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: embedded: %w", err)
	}
	record, known := s.scope(scope)
	if !known {
		return dedup.Answer{}, nil
	}
	owner, found, err := s.get(claimKey(nil, record.ID, id), s.now())
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: embedded: %w", err)
	}
	if !found {
		return dedup.Answer{}, nil
	}
	if err := s.latestWrite().wait(ctx); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: embedded: %w", err)
	}
	return owner.answer(), nil
}

// Release implements dedup.Store.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	if err := s.usable(ctx); err != nil {
		return fmt.Errorf("release an id: embedded: %w", err)
	}
	record, known := s.scope(scope)
	if !known {
		return nil
	}
	key := claimKey(nil, record.ID, id)
	mine, err := s.pending.take(ctx, []uint64{hash(key)})
	if err != nil {
		return fmt.Errorf("release an id: embedded: %w", err)
	}
	defer s.pending.give(mine)
	if err := s.db.Delete(key, pebble.Sync); err != nil {
		return fmt.Errorf("release an id: embedded: %w", err)
	}
	return s.health.err()
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	s.logs.inUse.Store(false)
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close embedded store: %w", err)
	}
	return nil
}

// usable returns why a call cannot begin.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return s.health.err()
}
