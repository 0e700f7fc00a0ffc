package linearizability_test

import "github.com/anishathalye/porcupine"

// register is what the contract of dedup.Store makes of one ID: free, or held by one attempt to
// claim it.
type register struct {
	holder    int32 // 0: free
	owner     int64
	claimedAt int64 // 0 while nobody has seen it
	long      bool  // it surely holds for the whole ttl, by its claim or by a renewal
	released  int32 // open releases that have had their effect, in a reduced search
	ended     bool  // nothing follows but open operations without an effect
}

// input is an operation as the search sees it.
type input struct {
	*operation
	reduced bool
	seen    bool  // a claim whose number is in an answer
	rank    int32 // of an open release among those of its ID, in the order of their calls
}

var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, in, _ any) (bool, any) { return state.(register).step(in.(input)) },
	Hash: func(state any) uint64 {
		s := state.(register)
		return uint64(s.holder)*0x9e3779b97f4a7c15 ^ uint64(
			s.claimedAt)*0xff51afd7ed558ccd ^ uint64(s.released)*0xc4ceb9fe1a85ec53
	},
}

// step reports whether the operation may come next, and what the ID is then.
func (r register) step(o input) (bool, any) {
	switch {
	case r.ended:
		return o.result == open && (o.action == releasing || !o.seen), r
	case o.result == open:
		return r.stepOpen(o)
	case o.result == taken:
		return r.observe(o.operation)
	case o.action == lookingUp:
		return r.holder == 0, r
	case o.action == claiming: // the answer must tell the caller's own claim
		return r.holder == 0 && o.holder == o.attempt && o.holderOwner == o.owner,
			register{holder: o.attempt, owner: o.owner, claimedAt: o.claimedAt,
				long: o.long, released: r.released}
	case o.action == releasing:
		return true, register{released: r.released}
	}
	r.ended = true
	return true, r
}

// stepOpen gives an open operation its effect, if there is one. To have none is to come at the very
// end.
func (r register) stepOpen(o input) (bool, any) {
	switch o.action {
	case claiming:
		if r.holder != 0 {
			return !o.reduced, r
		}
		return true, register{holder: o.attempt, owner: o.owner, long: o.long,
			released: r.released}
	case releasing:
		if o.reduced && (r.holder == 0 || o.rank != r.released) {
			return false, r
		}
		if o.reduced {
			r.released++
		}
		return true, register{released: r.released}
	}
	return true, r
}

// observe compares an answer: who holds the ID, by which attempt, and since when, which is the same
// for all who see it. A claim that was told so is renewed, unless its owner made it. One of which
// the outcome is open may have renewed the ID or not, which no answer contradicts.
func (r register) observe(o *operation) (bool, any) {
	if r.holder == 0 || r.holder != o.holder || r.owner != o.holderOwner || r.claimedAt != 0 &&
		r.claimedAt != o.claimedAt || r.long && o.short {
		return false, r
	}
	r.long = r.long || o.long && r.owner != o.owner
	r.claimedAt = o.claimedAt
	return true, r
}
