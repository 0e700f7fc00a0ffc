package postgres

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// Sweep deletes expired claims now.
func (s *Store) Sweep(ctx context.Context) (deleted int64, err error) { return s.sweep(ctx) }

// SetClock lets the sweep look at another clock than the system's.
func (s *Store) SetClock(wall func() time.Time) {
	s.clock = steadyclock.New(steadyclock.Options{Wall: wall})
}

// SweepLock is the advisory lock of the process that sweeps.
func (s *Store) SweepLock() int64 { return s.sweepLock() }

// SweepBatch is how many rows go at a time.
const SweepBatch = sweepBatch

// Retries counts the statements that were sent again.
func (s *Store) Retries() prometheus.Counter { return s.metrics.retries }

// SweptClaims counts them.
func (s *Store) SweptClaims() prometheus.Counter { return s.metrics.swept }

// SweepLag is how far the deletion lags behind, in seconds.
func (s *Store) SweepLag() prometheus.Gauge { return s.metrics.sweepLag }

// WatchEvery has the watch look in other pauses.
func (s *Store) WatchEvery(pause time.Duration) {
	s.watch.Close()
	s.watch = dedup.NewWatch(pause, s.stillFit)
}

// ScopeKey is the number of a scope in the table.
var ScopeKey = scopeKey

// KeyOf is what is stored for an ID.
var KeyOf = keyOf
