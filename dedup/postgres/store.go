package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// Store is a dedup.Store on PostgreSQL. Any number of processes may share its table.
type Store struct {
	pool    *pgxpool.Pool
	options Options
	sql     statements
	metrics *metrics

	stop       context.CancelFunc
	background sync.WaitGroup // the sweep
	clock      *steadyclock.Clock
	watch      *dedup.Watch
}

var _ dedup.Store = (*Store)(nil)

// Open connects and checks that the tables are there. It creates nothing, see Setup. With a nil
// Registerer there are no metrics.
func Open(ctx context.Context, options Options, reg prometheus.Registerer) (*Store, error) {
	options = options.withDefaults()
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	pool, err := options.connect(ctx, checkSession)
	if err != nil {
		return nil, fmt.Errorf("open store: postgres %v: %w", options.Hosts, err)
	}
	if err := checkSchema(ctx, pool, options); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open store: postgres %v: %w", options.Hosts, explain(ctx, err))
	}
	sweeping, stop := context.WithCancel(context.Background())
	s := &Store{
		pool: pool, options: options, sql: newStatements(options.claimsTable()), stop: stop,
		clock: steadyclock.New(steadyclock.Options{Logger: options.Logger}),
		metrics: newMetrics(reg, func() (acquired, limit int32) {
			stat := pool.Stat()
			return stat.AcquiredConns(), stat.MaxConns()
		}),
	}
	s.watch = dedup.NewWatch(watchEvery, s.stillFit)
	if options.SweepInterval > 0 {
		s.background.Go(func() { s.sweepEvery(sweeping, options.SweepInterval) })
	}
	return s, nil
}

// Connect returns a pool as the store's own, for whoever keeps another table beside the claims: it
// refuses servers that forget what they have answered. It connects when it is used.
func Connect(ctx context.Context, options Options) (*pgxpool.Pool, error) {
	options = options.withDefaults()
	pool, err := options.connect(ctx, checkSession)
	if err != nil {
		return nil, fmt.Errorf("connect to postgres %v: %w", options.Hosts, err)
	}
	return pool, nil
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	s.watch.Close()
	s.pool.Close()
	return nil
}

// Lookup implements dedup.Store.
func (s *Store) Lookup(
	ctx context.Context, scope dedup.Scope, id dedup.ID,
) (answer dedup.Answer, err error) {
	if err := s.watch.Err(); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: postgres: %w", err)
	}
	err = s.bounded(ctx, func(ctx context.Context) error {
		_, answer, err = scanOwner(s.pool.QueryRow(ctx, s.sql.lookup, scopeKey(scope), keyOf(id)))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return dedup.Answer{}, nil
	}
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: postgres: %w", explain(ctx, err))
	}
	return answer, nil
}

// Release implements dedup.Store.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	err := s.bounded(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, s.sql.release, scopeKey(scope), keyOf(id))
		return err
	})
	if err != nil {
		return fmt.Errorf("release an id: postgres: %w", explain(ctx, err))
	}
	return nil
}

// watchEvery is the pause between two looks at the tables. What the commit of a claim rests on goes
// with the claim.
const watchEvery = 30 * time.Second

// stillFit asks what Open has asked.
func (s *Store) stillFit(ctx context.Context) (problem, err error) {
	err = s.bounded(ctx, func(ctx context.Context) error {
		return checkSchema(ctx, s.pool, s.options)
	})
	if isUnfit(err) {
		return err, nil
	}
	return nil, err
}

// bounded gives a statement its time. A session that has become read-only is that of a server which
// is no primary any more. All leave the pool then, so that the next ones look for a server that
// takes writes.
func (s *Store) bounded(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	err := run(ctx)
	if codeOf(err) == readOnlyTransaction {
		s.pool.Reset()
	}
	return err
}
