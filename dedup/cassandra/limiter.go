package cassandra

import (
	"context"
	"sync"
)

// limiter bounds the requests in flight. The bound adapts (AIMD): a request that the server could
// not take in time halves it, requests that succeed raise it again one by one. A slow cluster is
// therefore asked less, not more, and a retry storm cannot build up.
type limiter struct {
	mu      sync.Mutex
	limit   float64 // between minLimit and max
	max     float64
	inUse   int
	epoch   int // of the last decrease; see overloaded
	waiting []chan struct{}
}

const minLimit = 2

func newLimiter(most int) *limiter {
	return &limiter{limit: float64(most), max: float64(most)}
}

// acquire takes a place and returns the epoch to hand back with overloaded.
func (l *limiter) acquire(ctx context.Context) (epoch int, err error) {
	l.mu.Lock()
	if l.inUse < int(l.limit) {
		l.inUse++
		defer l.mu.Unlock()
		return l.epoch, nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.epoch, nil
	case <-ctx.Done():
		return 0, l.abandon(turn, context.Cause(ctx))
	}
}

// abandon takes a waiter out of the queue, or passes its place on if it was called just now.
func (l *limiter) abandon(turn chan struct{}, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == turn {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return err
		}
	}
	l.inUse--
	l.admitLocked()
	return err
}

// release gives the place back after a request that was answered in time.
func (l *limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse--
	l.limit = min(l.max, l.limit+1/l.limit)
	l.admitLocked()
}

// overloaded gives the place back after a request that the server could not take in time. All the
// requests that were in flight at one decrease tell of the same overload: they count once.
func (l *limiter) overloaded(epoch int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse--
	if epoch == l.epoch {
		l.limit = max(minLimit, l.limit/2)
		l.epoch++
	}
	l.admitLocked()
}

func (l *limiter) admitLocked() {
	for len(l.waiting) > 0 && l.inUse < int(l.limit) {
		l.inUse++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// current returns the bound and how much of it is in use.
func (l *limiter) current() (limit float64, inUse int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit, l.inUse
}
