package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kdedup/kdedup/internal/steadyclock"
)

// Schema returns the statements that create the table of the options, for a migration. They may be
// repeated.
func Schema(o Options) string {
	table := o.table()
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	namespace  bytea       NOT NULL,
	id         bytea       NOT NULL,
	owner      bytea       NOT NULL,
	revision   bigint      NOT NULL,
	state      text        NOT NULL, -- started, completed, failed or released
	fencing_token bigint   NOT NULL,
	lease_ms   bigint      NOT NULL,
	request    bytea       NOT NULL, -- SHA-256
	response   bytea       NOT NULL,
	changed_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (namespace, id)
);
CREATE INDEX IF NOT EXISTS ` + o.index() + ` ON ` + table + ` (expires_at);
`
}

// Setup creates the table, unless it exists.
func Setup(ctx context.Context, pool *pgxpool.Pool, o Options) error {
	if _, err := pool.Exec(ctx, Schema(o)); err != nil {
		return fmt.Errorf("set up idempotency store: postgres: %w", err)
	}
	return nil
}

// statements are those of one table.
type statements struct{ get, insert, update, sweep string }

// newStatements. An expired row counts as absent: a first record replaces it, and only that.
func newStatements(table string) statements {
	return statements{
		get: `SELECT owner, revision, state, fencing_token, lease_ms, request, response FROM ` + table + `
			WHERE namespace = $1 AND id = $2 AND expires_at > now()`,
		insert: `INSERT INTO ` + table + ` AS t
			(namespace, id, owner, revision, state, fencing_token, lease_ms, request, response, changed_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now(), now() + make_interval(secs => $10))
			ON CONFLICT (namespace, id) DO UPDATE SET
				owner = excluded.owner, revision = excluded.revision, state = excluded.state, fencing_token = excluded.fencing_token,
				lease_ms = excluded.lease_ms, request = excluded.request, response = excluded.response,
				changed_at = excluded.changed_at, expires_at = excluded.expires_at
			WHERE t.expires_at <= now()`,
		update: `UPDATE ` + table + ` SET owner = $3, revision = $4, state = $5, fencing_token = $6, lease_ms = $7, request = $8,
				response = $9, changed_at = now(), expires_at = now() + make_interval(secs => $10)
			WHERE namespace = $1 AND id = $2 AND owner = $11 AND revision = $12 AND expires_at > now()`,
		// Rows that a swap holds are left for the next time.
		sweep: `DELETE FROM ` + table + ` WHERE (namespace, id) IN (
			SELECT namespace, id FROM ` + table + ` WHERE expires_at <= LEAST(now(), $2) LIMIT $1 FOR UPDATE SKIP LOCKED)`,
	}
}

// Expired records are deleted in small batches with pauses.
const (
	sweepBatch = 1000
	sweepPause = 100 * time.Millisecond
)

func (s *Store) sweepEvery(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("expired idempotency records were not deleted, trying again later",
				"error", err, "after", interval)
		}
	}
}

// Sweep deletes all records that have expired, and returns how many. A store does it by itself, see
// Options.SweepInterval. They have expired by the server's clock, and by a steady one of this
// process: what one wrong clock deletes is gone for good.
func (s *Store) Sweep(ctx context.Context) (deleted int64, err error) {
	for {
		tag, err := s.pool.Exec(ctx, s.sql.sweep, sweepBatch,
			s.clock.Passed(steadyclock.MostPatience))
		if err != nil {
			return deleted, fmt.Errorf("delete expired records: postgres: %w", err)
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() < sweepBatch {
			return deleted, nil
		}
		select {
		case <-time.After(sweepPause):
		case <-ctx.Done():
			return deleted, context.Cause(ctx)
		}
	}
}
