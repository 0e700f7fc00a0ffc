// Package postgres is an idempotency.Store in a PostgreSQL table.
//
// Every swap is one statement, an INSERT … ON CONFLICT or an UPDATE, at the default isolation
// level. What was swapped is durable when the commit is: leave synchronous_commit on, and where a
// failover must not forget, make the standby synchronous. TTLs are measured by the server. What is
// expired counts as absent at once, and is deleted later in small batches.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// DefaultTable is the table of Options that name none.
const DefaultTable = "idempotency_keys"

// Options may all be left zero.
type Options struct {
	Table string // optionally with a schema: "billing.keys"; "": DefaultTable
	// between two deletions of expired records; 0: 10 minutes, below 0: never
	SweepInterval time.Duration
	Logger        *slog.Logger // gets deletions that failed; nil: nothing is logged
}

const defaultSweepInterval = 10 * time.Minute

// Store is an idempotency.Store in one table. Any number of processes may share it.
type Store struct {
	pool  *pgxpool.Pool
	log   *slog.Logger
	table string
	sql   statements

	stop       context.CancelFunc
	background sync.WaitGroup
	clock      *steadyclock.Clock
}

var _ idempotency.Store = (*Store)(nil)

// Open checks that the table is there; Setup makes it. The pool stays the caller's, and is closed
// after the store.
func Open(ctx context.Context, pool *pgxpool.Pool, o Options) (*Store, error) {
	if o.SweepInterval == 0 {
		o.SweepInterval = defaultSweepInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{pool: pool, log: o.Logger, table: o.table(),
		clock: steadyclock.New(steadyclock.Options{Logger: o.Logger})}
	s.sql = newStatements(s.table)
	if _, err := s.get(ctx, idempotency.Key{}); err != nil {
		return nil, fmt.Errorf("open idempotency store: postgres: %w", s.explain(err))
	}
	ctx, s.stop = context.WithCancel(context.Background())
	if o.SweepInterval > 0 {
		s.background.Go(func() { s.sweepEvery(ctx, o.SweepInterval) })
	}
	return s, nil
}

// table is quoted for SQL.
func (o Options) table() string {
	return pgx.Identifier(strings.Split(cmp.Or(o.Table, DefaultTable), ".")).Sanitize()
}

// index is the name of the index on expires_at, quoted; it is in the schema of the table.
func (o Options) index() string {
	names := strings.Split(cmp.Or(o.Table, DefaultTable), ".")
	return pgx.Identifier{names[len(names)-1] + "_expires_at"}.Sanitize()
}

// explain adds the remedy to a missing table.
func (s *Store) explain(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42P01" {
		return fmt.Errorf("table %s does not exist; create it with postgres.Setup or with the "+
			"statement of postgres.Schema: %w", s.table, err)
	}
	return err
}

// Close ends the deletions of expired records.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	return nil
}

// Get implements idempotency.Store.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	record, err := s.get(ctx, key)
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("get: postgres: %w", err)
	}
	return record, nil
}

func (s *Store) get(
	ctx context.Context, key idempotency.Key,
) (record idempotency.Record, err error) {
	var (
		owner, request []byte
		lease          int64
		state          string
	)
	err = s.pool.QueryRow(ctx, s.sql.get, []byte(key.Namespace), []byte(key.ID)).
		Scan(&owner, &record.Revision, &state, &record.Token, &lease, &request, &record.Response)
	if errors.Is(err, pgx.ErrNoRows) {
		return idempotency.Record{}, nil
	}
	if err != nil {
		return idempotency.Record{}, err
	}
	copy(record.Owner[:], owner)
	copy(record.Request[:], request)
	record.Lease = time.Duration(lease) * time.Millisecond
	record.State, err = idempotency.ParseState(state)
	return record, err
}

// Swap implements idempotency.Store.
func (s *Store) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	args := []any{
		[]byte(key.Namespace), []byte(key.ID), next.Owner[:], next.Revision, next.State.String(),
		next.Token,
		next.Lease.Milliseconds(), next.Request[:], nonNil(next.Response), ttl.Seconds(),
	}
	statement := s.sql.insert
	if old != (idempotency.Version{}) {
		statement, args = s.sql.update, append(args, old.Owner[:], old.Revision)
	}
	tag, err := s.pool.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() == 0 {
		current, err = s.get(ctx, key)
	}
	if err != nil {
		return idempotency.Record{}, false, fmt.Errorf("swap: postgres: %w", err)
	}
	return current, tag.RowsAffected() == 1, nil
}

// nonNil keeps a null out of the table.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
