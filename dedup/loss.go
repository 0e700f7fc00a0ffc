package dedup

import (
	"context"
	"errors"
	"time"
)

// ErrLost is wrapped by what Lossy.Lost returns.
var ErrLost = errors.New("claims are gone that still hold, so copies of them would pass")

// Lossy is implemented by stores whose claims others can remove before they have ended, and that
// notice it.
type Lossy interface {
	// Lost returns ErrLost if claims of a scope are gone that still hold, of which this process has
	// no copy, unless an operator has accepted that. Fences settle claims up to a time, which is
	// zero if there are none.
	Lost(ctx context.Context, scope Scope, settled time.Time) error
	// AcceptLoss declares that claims which were made by now may be gone.
	AcceptLoss(ctx context.Context, scope Scope) error
}

// Lost asks a store that is Lossy.
func Lost(ctx context.Context, store Store, scope Scope, settled time.Time) error {
	if lossy, is := Unwrapped(store).(Lossy); is {
		return lossy.Lost(ctx, scope, settled)
	}
	return nil
}

// AcceptLoss tells a store that is Lossy.
func AcceptLoss(ctx context.Context, store Store, scope Scope) error {
	if lossy, is := Unwrapped(store).(Lossy); is {
		return lossy.AcceptLoss(ctx, scope)
	}
	return nil
}
