package embedded

import (
	"context"
	"sync"
)

// reservations let one call at a time decide about an ID. A call takes all its IDs or none, so no
// two calls can wait for each other. IDs are told apart by hash: two that share one only wait.
type reservations struct {
	mu    sync.Mutex
	taken map[uint64]*reservation
}

type reservation struct {
	hashes []uint64
	given  chan struct{}
}

func (r *reservations) init() { r.taken = make(map[uint64]*reservation) }

// take waits until no other call holds one of the hashes.
func (r *reservations) take(ctx context.Context, hashes []uint64) (*reservation, error) {
	mine := &reservation{hashes: hashes, given: make(chan struct{})}
	for {
		other := r.try(mine)
		if other == nil {
			return mine, nil
		}
		select {
		case <-other.given:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try takes all hashes, or returns a reservation that is in the way.
func (r *reservations) try(mine *reservation) *reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range mine.hashes {
		if other, ok := r.taken[h]; ok {
			return other
		}
	}
	for _, h := range mine.hashes {
		r.taken[h] = mine
	}
	return nil
}

func (r *reservations) give(mine *reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range mine.hashes {
		delete(r.taken, h)
	}
	close(mine.given)
}
