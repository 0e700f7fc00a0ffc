package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// Options say where the store is. Only Path and Logger are needed.
type Options struct {
	Path       string // the directory; it is created if it is missing
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	// between two deletions of expired claims; 0: 10 minutes, below 0: never
	SweepInterval time.Duration
	Now           func() time.Time // nil: time.Now

	elapsed      func() time.Duration // nil: since Open
	disk         durable.Disk         // nil: the system's
	untended     bool                 // see hashlog.Options; so is the next
	segmentBytes int64
}

// Store is a dedup.Store in one directory.
type Store struct {
	path    string
	now     func() time.Time
	elapsed func() time.Duration
	log     *slog.Logger
	disk    durable.Disk
	lock    *flock.Flock
	locked  os.FileInfo  // the file of the lock
	watch   *dedup.Watch // nil: nobody tends the store
	clock   *steadyclock.Clock
	logs    hashlog.Options

	mu     sync.Mutex
	scopes map[scopeName]*scopeState
	lastID int // the number of a scope

	sweeping   sync.Mutex // held by a sweep, which uses scopes that must not be closed meanwhile
	stop       context.CancelFunc
	background sync.WaitGroup
}

var _ dedup.Store = (*Store)(nil)

const (
	defaultSweepInterval = 10 * time.Minute

	// mostOpen is how many files are open, beside one for each scope, however many there are.
	mostOpen = 256
)

// ErrUsed says that another process has the store open.
var ErrUsed = errors.New(
	"used by another process: one process per directory; to share a store, set store.type to " +
		"kafka, cassandra, redis or postgres")

// Open opens the directory or makes a new one.
func Open(o Options) (*Store, error) {
	if o.SweepInterval == 0 {
		o.SweepInterval = defaultSweepInterval
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.disk == nil {
		o.disk = durable.System{}
	}
	s := &Store{
		path: o.Path, now: o.Now, elapsed: o.elapsed, log: o.Logger, disk: o.disk,
		scopes: make(map[scopeName]*scopeState),
		logs: hashlog.Options{
			Logger: o.Logger, Disk: o.disk, Files: hashlog.NewFiles(mostOpen),
			ManualMaintenance: o.untended, SegmentBytes: o.segmentBytes,
		},
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open embedded store %s: %w", o.Path, err)
	}
	if o.Registerer != nil {
		s.registerMetrics(o.Registerer)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	if !o.untended {
		s.watch = dedup.NewWatch(watchEvery, s.stillThere)
	}
	if o.SweepInterval > 0 {
		s.background.Go(func() { s.sweepEvery(ctx, o.SweepInterval) })
	}
	return s, nil
}

func (s *Store) open() error {
	if err := durable.MakeDirectories(s.disk, s.path); err != nil {
		return err
	}
	s.lock = flock.New(filepath.Join(s.path, "LOCK"))
	mine, err := s.lock.TryLock()
	if err != nil {
		return err
	}
	if !mine {
		return ErrUsed
	}
	if s.locked, err = os.Stat(s.lock.Path()); err != nil {
		return errors.Join(err, s.lock.Unlock())
	}
	if err := s.load(); err != nil {
		return errors.Join(err, s.closeFiles())
	}
	return nil
}

func (s *Store) load() (err error) {
	options := steadyclock.Options{Wall: s.now, Elapsed: s.elapsed, Logger: s.log, Disk: s.disk}
	if s.clock, err = steadyclock.Open(filepath.Join(s.path, "CLOCK"), options); err != nil {
		return err
	}
	return s.loadScopes()
}

func (s *Store) closeFiles() (err error) {
	for _, scope := range s.scopes {
		err = errors.Join(err, scope.claims.Close())
	}
	return errors.Join(err, s.lock.Unlock())
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	if s.watch != nil {
		s.watch.Close()
	}
	if err := errors.Join(s.clock.Save(), s.closeFiles()); err != nil {
		return fmt.Errorf("close embedded store: %w", err)
	}
	return nil
}

// Lookup implements dedup.Store.
func (s *Store) Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	answer, err := s.lookup(ctx, scope, id)
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: embedded: %w", err)
	}
	return answer, nil
}

func (s *Store) lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	state, err := s.usable(ctx, scope)
	if err != nil || state == nil {
		return dedup.Answer{}, err
	}
	record, _, found, err := state.get(state.claims.NewReader(), []byte(id), s.now())
	if err != nil || !found {
		return dedup.Answer{}, err
	}
	if err := state.sync(ctx, state.claims.Latest()); err != nil {
		return dedup.Answer{}, err
	}
	return record.answer(), nil
}

// Release implements dedup.Store.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	if err := s.release(ctx, scope, id); err != nil {
		return fmt.Errorf("release an id: embedded: %w", err)
	}
	return nil
}

func (s *Store) release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	state, err := s.usable(ctx, scope)
	if err != nil || state == nil {
		return err
	}
	mark, err := state.free(ctx, []byte(id), s.now())
	if err != nil {
		return err
	}
	return state.sync(ctx, mark)
}

// usable returns the state of a scope, nil if it has none, or why a call cannot begin.
func (s *Store) usable(ctx context.Context, scope dedup.Scope) (*scopeState, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.watch != nil && s.watch.Err() != nil {
		return nil, s.watch.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.scopes[nameOf(scope)]
	if state == nil {
		return nil, nil
	}
	return state, state.err()
}
