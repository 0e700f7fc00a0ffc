package linearizability_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// prune leaves out what cannot matter: look-ups without an answer, and open claims that nobody saw.
// Take a linearization in which such a claim had an effect. What comes next is an open claim, which
// may as well move to the end, a release, or nothing; without the claim the ID is free instead, and
// all answers stay the same.
func prune(operations []*operation) []*operation {
	seen := observed(operations)
	return slices.DeleteFunc(slices.Clone(operations), func(o *operation) bool {
		return o.result == open && (o.action == lookingUp || o.action == claiming &&
			!seen[o.attempt])
	})
}

// observed are the attempts that somebody has seen.
func observed(operations []*operation) map[int32]bool {
	seen := make(map[int32]bool)
	for _, o := range operations {
		if o.result == taken {
			seen[o.holder] = true
		}
	}
	return seen
}

// whole is the history of one ID for porcupine. What is open returns at infinity.
func whole(operations []*operation) []porcupine.Operation {
	seen := observed(operations)
	history := make([]porcupine.Operation, len(operations))
	for i, o := range operations {
		end := o.end
		if o.result == open {
			end = math.MaxInt64
		}
		in := input{operation: o, seen: o.action == claiming && seen[o.attempt]}
		history[i] = porcupine.Operation{ClientId: o.client, Input: in, Call: o.call, Output: o,
			Return: end}
	}
	return history
}

// reduce is the same for a search that leaves out what is the same again; histories with many
// errors end in no other way. An open operation that finds nothing to do may as well come at the
// very end, behind an operation "ending". And of two open releases with an effect, the one that was
// called first comes first: if not, exchange them.
func reduce(operations []*operation) []porcupine.Operation {
	history := whole(prune(operations))
	last := int64(0)
	var releases []*input
	for i := range history {
		in := history[i].Input.(input)
		in.reduced = true
		if history[i].Return != math.MaxInt64 {
			last = max(last, history[i].Return)
		} else if in.action == releasing {
			releases = append(releases, &in)
		}
		history[i].Input = &in
	}
	slices.SortStableFunc(releases, func(a, b *input) int { return cmp.Compare(a.call, b.call) })
	for rank, in := range releases {
		in.rank = int32(rank)
	}
	for i := range history {
		history[i].Input = *history[i].Input.(*input)
	}
	end := &operation{action: ending, result: done, call: last + 1, end: last + 1}
	return append(history, porcupine.Operation{Input: input{operation: end, reduced: true},
		Call: end.call, Output: end, Return: end.end})
}

// beginning is the history up to the n-th return. What had not returned by then is open, so that
// each beginning of a linearizable history is linearizable. The operations are in the order of
// their returns, the open ones last.
func beginning(operations []*operation, n int) []*operation {
	until := operations[n-1]
	if until.result == open {
		return operations
	}
	part := slices.Clone(operations[:n])
	for _, o := range operations[n:] {
		if o.call <= until.end && o.action != lookingUp {
			begun := *o
			begun.result = open
			part = append(part, &begun)
		}
	}
	return part
}
