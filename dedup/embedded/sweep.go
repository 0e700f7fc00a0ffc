package embedded

import (
	"context"
	"errors"
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
			s.log.Warn("expired claims were not deleted, trying again later", "error", err, "after", interval)
		case files > 0:
			s.log.Debug("deleted expired claims", "files", files)
		}
	}
}

// sweep deletes the files of which all claims have expired.
func (s *Store) sweep(ctx context.Context) (files int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for _, state := range s.states() {
		n, dropErr := state.claims.Drop(ctx, s.now().UnixMilli())
		files += n
		err = errors.Join(err, dropErr)
	}
	return files, err
}

func (s *Store) states() (list []*scopeState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.scopes {
		list = append(list, state)
	}
	return list
}
