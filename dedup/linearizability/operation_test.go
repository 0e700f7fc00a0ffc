package linearizability_test

import "fmt"

type action uint8

const (
	claiming action = iota
	lookingUp
	releasing
	ending // of a history: see reduce
)

type result uint8

const (
	// Undecided, or an error: it has its effect at any time after the call, or never
	open  result = iota
	done         // the claim was applied, or the release answered
	taken        // somebody owns the ID
	free         // nobody does
)

// operation is what one call did to one ID. Each attempt to claim has a number of its own, which
// travels in the fingerprint: who sees the ID owned sees by which very attempt, also when one owner
// has tried twice.
type operation struct {
	action  action
	result  result
	id      int
	attempt int32 // from 1, unique in a history
	owner   int64 // the offset in the coordinates: the attempts of one owner share it
	client  int

	long  bool // the claim is for the whole ttl, also where it renews another
	short bool // the look-up saw that the ID ends before what a claim for the whole ttl lasts

	call, end int64 // nanoseconds since the history began

	// The answer: the attempt that holds the ID, its owner, and when it was made, in milliseconds.
	holder      int32
	holderOwner int64
	claimedAt   int64
}

func (o *operation) String() string {
	calls := [...]string{fmt.Sprintf("claim #%d by owner %d", o.attempt, o.owner), "look up",
		"release", "end"}
	call := fmt.Sprintf("client %d: %s", o.client, calls[o.action])
	if o.long {
		call += " for long"
	}
	if o.result == open {
		return fmt.Sprintf("%12.6f ..              %s: open", float64(o.call)/1e9, call)
	}
	holder := fmt.Sprintf("taken by #%d of owner %d at %d", o.holder, o.holderOwner, o.claimedAt)
	if o.short {
		holder += ", and ends soon"
	}
	answer := [...]string{"", "done", holder, "free"}[o.result]
	return fmt.Sprintf("%12.6f .. %10.6f %s: %s", float64(o.call)/1e9, float64(o.end)/1e9, call,
		answer)
}
