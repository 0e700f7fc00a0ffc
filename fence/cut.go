package fence

import (
	"cmp"
	"slices"
)

// cut is what was handled of a log whose end an unclean leader election has cut off: all from one
// offset on, below next, of these epochs, with claims made up to claimed. Producers may send again
// what was cut off.
type cut struct {
	step
	epoch int32
	from  int64 // where the log was cut; or unknown
}

// unknown is where a log was cut of which an earlier kdedup tells, or whose leader does not.
const unknown = -1

// mostCuts is how many are kept, those of the latest epochs. One is dropped as soon as the log is
// as long again, and tells of no missing records there.
const mostCuts = 16

// Cut returns the fence of a log that an unclean leader election has cut at an offset: it ends
// there, and remembers what was handled behind that.
func (f Fence) Cut(end int64) Fence {
	if end >= f.Next() {
		return f
	}
	f.cuts = union(f.cutOff(end), nil)
	f.steps = stairs(below(f.steps, end), nil)
	f.missing = f.missing.below(end)
	return f
}

// cutOff are the cuts with what the fence says of a log that is cut now.
func (f Fence) cutOff(from int64) []cut {
	if len(f.steps) == 0 {
		return f.cuts
	}
	return append(slices.Clip(f.cuts), cut{step{f.Next(), f.Claimed()}, f.LeaderEpoch, from})
}

// union are the cuts of both that say more than others.
func union(a, b []cut) (kept []cut) {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(x, y cut) int {
		// as an unsigned number, unknown is the last
		return cmp.Or(cmp.Compare(y.epoch, x.epoch), cmp.Compare(y.next, x.next),
			y.claimed.Compare(x.claimed), cmp.Compare(uint64(x.from), uint64(y.from)))
	})
	for _, c := range all { // the later an epoch, the more it says of one offset
		said := slices.ContainsFunc(kept, func(k cut) bool {
			return c.next <= k.next && (c.from == unknown || k.from <= c.from)
		})
		if !said && len(kept) < mostCuts {
			kept = append(kept, c)
		}
	}
	return kept
}

// withoutKnown is the fence without cuts that say no more than its end does. What is missing from
// the log as it is must not be taken for missing from the one before.
func (f Fence) withoutKnown() Fence {
	f.cuts = slices.DeleteFunc(slices.Clone(f.cuts), func(c cut) bool {
		return c.next <= f.Next() && c.epoch <= f.LeaderEpoch &&
			(c.from == unknown || !f.missing.overlaps(c.from, c.next))
	})
	if len(f.cuts) == 0 {
		f.cuts = nil
	}
	return f
}

// cutAt is the cut that covers a record.
func (f Fence) cutAt(offset int64, leaderEpoch int32) (c cut, covered bool) {
	i := slices.IndexFunc(f.cuts, func(c cut) bool {
		return c.from <= offset && offset < c.next && leaderEpoch <= c.epoch &&
			(c.from != unknown || !f.missing.has(offset))
	})
	if i < 0 {
		return c, false
	}
	return f.cuts[i], true
}
