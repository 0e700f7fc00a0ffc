// Package pause waits: once, between tries, from tick to tick.
package pause

import (
	"context"
	"time"
)

// For waits and reports whether the wait ended by itself, not with ctx.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Every calls do at each tick of a clock, until ctx ends.
func Every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// Repeat calls try until it succeeds, fails with an error that does not pass by itself, or ctx
// ends.
func Repeat(
	ctx context.Context, between time.Duration, passes func(error) bool, try func() error,
) error {
	for {
		err := try()
		if err == nil || !passes(err) || !For(ctx, between) {
			return err
		}
	}
}
