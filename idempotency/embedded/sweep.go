package embedded

import (
	"context"
	"errors"
	"time"

	"github.com/kdedup/kdedup/internal/steadyclock"
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
		if _, err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("expired idempotency records were not deleted, trying again later",
				"error", err, "after", interval)
		}
	}
}

// sweep deletes the files of which all records have surely expired: what a wrong clock deletes is
// gone for good.
func (s *Store) sweep(ctx context.Context) (files int, err error) {
	files, err = s.records.Drop(ctx, s.clock.Passed(s.patience()).UnixMilli())
	return files, errors.Join(err, s.clock.Save())
}

func (s *Store) keepFor(ttl time.Duration) {
	for longest := s.ttl.Load(); int64(ttl) > longest &&
		!s.ttl.CompareAndSwap(longest, int64(ttl)); {
		longest = s.ttl.Load()
	}
}

// patience is how long a clock must have stood by a time before files go that have ended by it.
// Longer than a ttl it need not be.
func (s *Store) patience() time.Duration {
	if ttl := time.Duration(s.ttl.Load()); ttl > 0 {
		return min(ttl, steadyclock.MostPatience)
	}
	return steadyclock.MostPatience
}
