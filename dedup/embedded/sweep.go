package embedded

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
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
		files, err := s.sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("expired claims were not deleted, trying again later",
				"error", err, "after", interval)
		case files > 0:
			s.log.Debug("deleted expired claims", "files", files)
		}
	}
}

// sweep deletes the files of which all claims have surely expired. A wrong clock that is set right
// gives back the claims that had ended by it.
func (s *Store) sweep(ctx context.Context) (files int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for _, state := range s.states() {
		n, dropErr := state.claims.Drop(ctx, s.clock.Passed(state.patience()).UnixMilli())
		files += n
		err = errors.Join(err, dropErr)
	}
	return files, errors.Join(err, s.clock.Save())
}

func (s *Store) states() (list []*scopeState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.scopes {
		list = append(list, state)
	}
	slices.SortFunc(list, func(a, b *scopeState) int {
		return cmp.Compare(a.record.ID, b.record.ID)
	})
	return list
}
