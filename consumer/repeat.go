package consumer

import (
	"context"
	"time"
)

// repeat calls try until it succeeds, fails with an error that does not pass by itself, or ctx ends.
func repeat(ctx context.Context, pause time.Duration, passes func(error) bool, try func() error) error {
	for {
		err := try()
		if err == nil || !passes(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
