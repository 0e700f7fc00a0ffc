// Package pause waits between tries.
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
