package dedup

import "context"

// Amender is a Store that can register a scope with other settings, as long as no claim in it
// holds. Who began with a message_id that finds nothing has none, and need not name another scope.
type Amender interface {
	// HasClaims reports whether the scope, with the settings that it was registered with, holds a
	// claim. One that was released or has ended may count.
	HasClaims(ctx context.Context, registered Scope) (bool, error)

	// Amend replaces the settings of a registered scope. The caller knows that it has no claims,
	// and nobody claims meanwhile by the settings of before.
	Amend(ctx context.Context, registered, scope Scope) error
}
