package consumer

import (
	"context"
	"errors"
	"testing"
)

// A lane that polled a batch just before its partitions were taken must not begin to claim it.
func TestWorkOnABatchThatIsTakenAwayEndsBeforeItBegins(t *testing.T) {
	revoked, revoke := context.WithCancelCause(t.Context())
	revoke(ErrRevoked)
	b := &Batch{revoked: revoked}
	for range 1000 { // that it ends soon after is not enough
		work, end := b.Context(t.Context())
		if !errors.Is(context.Cause(work), ErrRevoked) {
			t.Fatalf("the work goes on: %v", context.Cause(work))
		}
		end()
	}
}
