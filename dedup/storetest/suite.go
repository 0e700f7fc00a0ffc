// Package storetest is the conformance suite of dedup.Store: what every store promises, as one
// named subtest per behaviour. A store runs it from its own tests. What a store cannot do, or does
// in its own way, it declares in Features; the suite never asks which store it is.
//
// Every subtest works in scopes of its own with random names, so the suite may run again and again
// against one long-lived server.
package storetest

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// Features are the differences between stores that the contract allows, and what the suite needs to
// reach behind the contract. The zero value asks for the least.
type Features struct {
	// ExpiryGranularity is how much earlier or later than its TTL a claim may end.
	ExpiryGranularity time.Duration

	// Reopen ends the store, by Close or by something worse, and returns one over the same data.
	// The suite uses only the new one afterwards. Without it the suite does not check durability.
	Reopen func(t *testing.T, store dedup.Store) dedup.Store

	// Ambiguous makes the next Claim of the store be applied but reported as failed: the answers
	// are Undecided and the error is not nil. Without it the suite does not check that case.
	Ambiguous func(t *testing.T, store dedup.Store)

	// Repeats says that the store may send a claim twice by itself. Then what this call has applied
	// may be answered by Exists, with the claim's own owner.
	Repeats bool

	// LongestID is how long the IDs may be that the store can export; 0: it exports all. Longer
	// ones it keeps in another form.
	LongestID int
}

// behaviour is one promise of the contract.
type behaviour struct {
	name string
	test func(t *testing.T, s *subject)
}

// Run checks every behaviour against the stores that open returns, one call per behaviour; they
// may be one and the same store. The caller of Run closes them, for instance in a cleanup of the
// subtest that open is given. Behaviours run in parallel, so a shared store must outlive Run.
func Run(t *testing.T, open func(t *testing.T) dedup.Store, features Features) {
	for _, group := range []struct {
		name       string
		behaviours []behaviour
	}{
		{"claim", claimBehaviours},
		{"id", idBehaviours},
		{"scope", scopeBehaviours},
		{"lifetime", lifetimeBehaviours},
		{"sliding", slidingBehaviours},
		{"concurrency", concurrencyBehaviours},
		{"failure", failureBehaviours},
		{"move", moveBehaviours},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, b := range group.behaviours {
				t.Run(b.name, func(t *testing.T) {
					t.Parallel()
					b.test(t, &subject{Store: open(t), features: features,
						began: time.Now()})
				})
			}
		})
	}
}
