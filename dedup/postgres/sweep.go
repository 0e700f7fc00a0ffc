package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// sweepBatch is how many rows one transaction of the sweep deletes. A claim on one of these very
// IDs waits for it: some milliseconds, for an ID that has just expired.
const sweepBatch = 1000

func (s *Store) sweepEvery(ctx context.Context, interval time.Duration) {
	pause.Every(ctx, interval, func() {
		deleted, err := s.sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.metrics.sweepErrors.Inc()
			s.noteLag(ctx)
			s.options.Logger.Warn("expired claims were not deleted, trying again later",
				"error", err, "after", interval)
		case deleted > 0:
			s.options.Logger.Debug("deleted expired claims", "claims", deleted)
		}
	})
}

// noteLag reads how far the deletion lags behind where nothing can be deleted. Where that cannot be
// read, no claim can be made either.
func (s *Store) noteLag(ctx context.Context) {
	var late float64
	if err := s.bounded(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql.late).Scan(&late)
	}); err == nil {
		s.metrics.sweepLag.Set(late)
	}
}

// sweep deletes expired claims until there are none, or another process deletes them. They have
// expired by the server's clock, and by a steady one of this process: what one wrong clock deletes
// is gone for good. It rests as long as it works. It goes on behind the rows that it deleted, and
// so does not step over their remains in the index again; what it skipped, because it was locked,
// the next sweep finds.
func (s *Store) sweep(ctx context.Context) (deleted int64, err error) {
	var from time.Time
	for {
		start := time.Now()
		batch, err := s.sweepBatch(ctx, from)
		deleted += batch.deleted
		if err != nil {
			return deleted, fmt.Errorf("delete expired claims: postgres: %w", explain(ctx, err))
		}
		if batch.deleted < sweepBatch {
			return deleted, nil
		}
		from = batch.last
		if !pause.For(ctx, time.Since(start)) {
			return deleted, context.Cause(ctx)
		}
	}
}

// swept is what one transaction of the sweep did.
type swept struct {
	deleted int64
	last    time.Time // end of the claim that was deleted last
}

// sweepBatch deletes rows that nobody else has locked, so it waits for nobody. The advisory lock is
// the transaction's: a session's would be lost, or kept, behind a pgbouncer. The transaction does
// not wait until its deletions are durable: those that a crash undoes are repeated.
func (s *Store) sweepBatch(ctx context.Context, from time.Time) (done swept, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var mine bool
		row := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1) FROM "+
			"set_config('synchronous_commit', 'off', true)", s.sweepLock())
		if err := row.Scan(&mine); err != nil || !mine {
			return err
		}
		var last *time.Time
		var late *time.Duration
		if _, err := tx.Exec(ctx, inIndexOrder); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, s.sql.sweep, from, sweepBatch,
			s.clock.Passed(steadyclock.MostPatience)).Scan(
			&done.deleted, &last, &late,
		); err != nil {
			return err
		}
		s.metrics.sweepLag.Set(0)
		if last != nil && late != nil {
			done.last = *last
			s.metrics.sweepLag.Set(late.Seconds())
		}
		return nil
	})
	if err != nil {
		return swept{}, err
	}
	s.metrics.swept.Add(float64(done.deleted))
	return done, nil
}

// sweepLock is the number of the advisory lock of the claim table.
func (s *Store) sweepLock() int64 {
	sum := sha256.Sum256([]byte("kdedup sweep " + s.options.claimsTable()))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
