package idempotency

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between two attempts at a store that failed.
const (
	firstRetry = 20 * time.Millisecond
	maxRetry   = time.Second
)

// attempts is how many calls fit into Options.StoreTimeout if the store does not answer at all.
const attempts = 4

// insist repeats a call of the store until it is answered, within Options.StoreTimeout and the
// caller's context. That is safe, see Store. The error is that of the last attempt.
func (e *Executor) insist(
	ctx context.Context, call func(context.Context) (Record, bool, error),
) (current Record, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.StoreTimeout)
	defer cancel()
	for pause := firstRetry; ; pause = min(2*pause, maxRetry) {
		current, done, err = attempt(ctx, e.options.StoreTimeout/attempts, call)
		if err == nil || !sleep(ctx, jitter(pause)) {
			return current, done, err
		}
	}
}

func attempt(
	ctx context.Context, limit time.Duration, call func(context.Context) (Record, bool, error),
) (Record, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}

// jitter keeps callers from returning in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// sleep waits and reports whether the wait ended by itself.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
