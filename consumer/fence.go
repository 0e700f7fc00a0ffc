package consumer

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Fence says up to where an input partition is done. The zero value covers nothing.
//
// An offset alone does not tell that a record was forwarded: it may have been dropped as a copy, and
// may claim its ID for itself once that copy's claim has ended. So each step also says until when the
// claims were made that it settles. A record below a step that owns a younger claim is a first copy.
type Fence struct {
	TopicID     [16]byte
	LeaderEpoch int32 // of the last record that was handled
	steps       []step
}

// step: all records below next were handled, and that was committed, with claims made up to claimed.
// The steps of a fence rise in next and fall in claimed. There is one, but while offsets that were
// set back are read again after their claims have ended: then one more for each such rewind.
type step struct {
	next    int64
	claimed time.Time // zero if no record owned a claim
}

// Next is the offset below which all records were handled.
func (f Fence) Next() int64 {
	if len(f.steps) == 0 {
		return 0
	}
	return f.steps[len(f.steps)-1].next
}

// epochBelow is the leader epoch of what lies below an offset that goes on at the fence, or is lower; -1 if it is not known.
// With it the client notices that the log was cut meanwhile (KIP-320).
func (f Fence) epochBelow(topicID [16]byte) int32 {
	if len(f.steps) == 0 || f.TopicID != topicID {
		return -1
	}
	return f.LeaderEpoch
}

// covers reports whether the record was handled. Offsets that an unclean leader election makes be
// used again carry a higher epoch, and those of a recreated topic another topic ID: new records are
// never taken for old ones. Records without an epoch (message formats 0 and 1) are never covered.
func (f Fence) covers(topicID [16]byte, r *kgo.Record) bool {
	return r.Offset < f.Next() && topicID == f.TopicID &&
		r.LeaderEpoch >= 0 && r.LeaderEpoch <= f.LeaderEpoch
}

// settled returns until when a claim by the record must have been made to be settled. The zero time
// comes before all claims.
func (f Fence) settled(topicID [16]byte, r *kgo.Record) time.Time {
	if !f.covers(topicID, r) {
		return time.Time{}
	}
	lowest := slices.IndexFunc(f.steps, func(s step) bool { return r.Offset < s.next })
	return f.steps[lowest].claimed
}

// advance returns the fence after a span was handled with claims made up to a time. A fence never
// goes back. While offsets that were set back are read again, the spans end below it, and with a
// lower fence the next session would take the rest of them for new. A later epoch is another log:
// there it begins anew.
func (f Fence) advance(s Span) Fence {
	done := step{s.Next, s.claimed}
	if f.TopicID == s.TopicID && s.Next >= f.Next() {
		for _, old := range f.steps {
			done.claimed = latest(done.claimed, old.claimed)
		}
	}
	return f.Merge(Fence{TopicID: s.TopicID, LeaderEpoch: s.LeaderEpoch, steps: []step{done}})
}

// Merge returns what both fences know together; o was written later.
func (f Fence) Merge(o Fence) Fence {
	back := o.Next() < f.Next()
	if f.TopicID != o.TopicID || back && o.LeaderEpoch > f.LeaderEpoch {
		return o
	}
	merged := Fence{TopicID: o.TopicID, LeaderEpoch: o.LeaderEpoch, steps: stairs(f.steps, o.steps)}
	if back {
		merged.LeaderEpoch = f.LeaderEpoch
	}
	return merged
}

// stairs keeps the steps that say more than those above them.
func stairs(a, b []step) []step {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y step) int {
		return cmp.Or(cmp.Compare(x.next, y.next), x.claimed.Compare(y.claimed))
	})
	kept := all[:0:0]
	for _, s := range slices.Backward(all) {
		if len(kept) == 0 || s.claimed.After(kept[len(kept)-1].claimed) {
			kept = append(kept, s)
		}
	}
	slices.Reverse(kept)
	return kept
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
