package memory

import "github.com/kdedup/kdedup/dedup"

// Effect is what happens to one claim.
type Effect uint8

const (
	// Answered: the claim is decided and the answer tells.
	Answered Effect = iota
	// NotApplied: the claim never arrives. Nothing changes, the answer is Undecided.
	NotApplied
	// Unreported: the claim is decided, but its answer is lost and reads Undecided.
	Unreported
)

// Fault is what happens to one call of Claim. The zero value is: nothing unusual.
type Fault struct {
	// Err is returned by the call if an answer is Undecided; nil stands for ErrInjected.
	Err error
	// Effect is asked for each claim by its index. Nil answers all of them.
	Effect func(i int) Effect
}

// Faults is asked once per call of Claim, before it takes effect and outside of the store's lock:
// it may block to hold a call up. It must be safe for concurrent use if the store is used so.
type Faults func(claims []dedup.Claim) Fault

// Lost is the fault of a call that never arrives.
func Lost(err error) Fault {
	return Fault{Err: err, Effect: func(int) Effect { return NotApplied }}
}

// Ambiguous is the fault of a call that is applied and reported as failed.
func Ambiguous(err error) Fault {
	return Fault{Err: err, Effect: func(int) Effect { return Unreported }}
}

// Partial is the fault of a call that fares differently from claim to claim.
func Partial(err error, effect func(i int) Effect) Fault {
	return Fault{Err: err, Effect: effect}
}
