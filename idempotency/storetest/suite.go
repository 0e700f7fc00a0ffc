// Package storetest checks that an idempotency.Store keeps its contract.
package storetest

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

// Features declare how a store differs, within what the contract allows, and what the suite needs
// to reach behind the contract. The zero value asks for the least.
type Features struct {
	// ExpiryGranularity is how much later than its TTL a record may end.
	ExpiryGranularity time.Duration

	// Reopen ends the store, by Close or by something worse, and returns one over the same data.
	// The suite uses only the new one afterwards. Without it the suite does not check durability.
	Reopen func(t *testing.T, store idempotency.Store) idempotency.Store

	// Owner makes the suite run KilledOwner.
	Owner *Owner
}

// behaviour is one promise.
type behaviour struct {
	name string
	test func(t *testing.T, s *subject)
}

// subject is the store under test.
type subject struct {
	idempotency.Store
	features Features
	executor NewExecutor // nil: the package's own
}

// Run checks every behaviour against the stores that open returns, one call per behaviour; they may
// be one and the same store. The caller of Run closes them, for instance in a cleanup of the
// subtest that open is given. Behaviours run in parallel, so a shared store must outlive Run. Each
// behaviour uses keys of its own.
func Run(t *testing.T, open func(t *testing.T) idempotency.Store, features Features) {
	for _, group := range []struct {
		name       string
		behaviours []behaviour
	}{
		{"swap", swapBehaviours},
		{"key", keyBehaviours},
		{"lifetime", lifetimeBehaviours},
		{"concurrency", concurrencyBehaviours},
		{"executor", executorBehaviours},
	} {
		t.Run(group.name, func(t *testing.T) {
			runAll(t, group.behaviours, func(t *testing.T) *subject {
				return &subject{Store: open(t), features: features}
			})
		})
	}
	if features.Owner != nil {
		t.Run("a killed owner is taken over once", func(t *testing.T) {
			KilledOwner(t, open, *features.Owner)
		})
	}
}

func runAll(t *testing.T, all []behaviour, open func(t *testing.T) *subject) {
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.test(t, open(t))
		})
	}
}
