package embedded

import (
	"context"

	"github.com/cockroachdb/pebble/v2"
)

// syncPoint is reached when a write is durable, and with it every write before.
type syncPoint struct {
	reached chan struct{}
	err     error
}

// synced is a point that is reached already.
func synced() *syncPoint {
	p := &syncPoint{reached: make(chan struct{})}
	close(p.reached)
	return p
}

// syncing waits for a batch that was applied without waiting. The batch's memory is given back
// there, whoever still waits.
func (s *Store) syncing(batch *pebble.Batch) *syncPoint {
	p := &syncPoint{reached: make(chan struct{})}
	s.background.Go(func() {
		defer close(p.reached)
		if p.err = batch.SyncWait(); p.err != nil {
			s.health.fail(p.err)
			return
		}
		if p.err = s.health.err(); p.err == nil {
			p.err = batch.Close()
		}
	})
	return p
}

// wait returns nil when the write is durable. After another error it may be or not.
func (p *syncPoint) wait(ctx context.Context) error {
	select {
	case <-p.reached:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// latestWrite is durable when all that could be read before the call is.
func (s *Store) latestWrite() *syncPoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
