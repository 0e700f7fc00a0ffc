package dedup

import (
	"context"
	"errors"
	"time"
)

// Standing is a claim that holds its ID, and until when.
type Standing struct {
	ID          ID
	Owner       Coordinates
	Fingerprint Fingerprint
	ClaimedAt   time.Time // in milliseconds
	// Ends is by the clock of this process, as far as the store's granularity allows: a store whose
	// server has another time converts it, by how much of the claim's life is left.
	Ends time.Time
}

// Answer is what a claimant hears that finds the claim.
func (s *Standing) Answer() Answer {
	return Answer{Outcome: Exists, Owner: s.Owner, Fingerprint: s.Fingerprint,
		ClaimedAt: s.ClaimedAt}
}

// ErrLongIDs is wrapped by Exporter.Export when claims stand of IDs that are so long that the store
// keeps only a hash of them. No other store could find those.
var ErrLongIDs = errors.New("claims of long IDs are kept under a hash and cannot be moved")

// StandingPage is how many claims an Exporter tells in one go at the most.
const StandingPage = 1000

// Exporter is a Store that can tell which claims stand in a scope, to move them into another store.
// The suite in dedup/storetest has its behaviours.
type Exporter interface {
	// Export calls page with the claims that stand, in no particular order, StandingPage at a time
	// or fewer, so that its memory is bounded. A claim that stands during the whole call is told at
	// least once, perhaps in another page again; one that is made, is released or ends meanwhile
	// may be told or not. None is told that had ended before. The scope has the settings with which
	// it was registered. Export ends with the first error of page, which keeps the claims only as
	// copies.
	Export(ctx context.Context, scope Scope, page func([]Standing) error) error
	// Find returns the claims that stand of some IDs, in no particular order. It sees every claim
	// that was answered before the call. There are StandingPage IDs at the most, and no two equal.
	Find(ctx context.Context, scope Scope, ids []ID) ([]Standing, error)
}

// Importer is a Store that can take a claim over from another store as it is: with the time at
// which it was made and the one at which it ends.
type Importer interface {
	// Import makes the claims of those IDs that are free, as Claim does: the same contract holds
	// for its answers, their durability and repetitions, and it never touches a claim that stands.
	// What stands already, or is made, is told with its own owner and times. A claim that ends
	// before it could be made is left out: its answer stays Undecided, without an error. The TTL of
	// the scope does not count.
	Import(ctx context.Context, scope Scope, claims []Standing) ([]Answer, error)
}

// Mover is a Store whose claims can be moved, from it and into it.
type Mover interface {
	Exporter
	Importer
}

// Left is how much of the claim's life is left at a time.
func (s *Standing) Left(now time.Time) time.Duration { return s.Ends.Sub(now) }
