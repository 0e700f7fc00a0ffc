// Package fence remembers, apart from a consumer group's offsets, up to where each partition of an
// input topic is handled.
//
// A fence stands in a compacted topic, which has a partition for each partition of the input. It is
// written together with what it tells of. So a group whose offsets were set back, set forward, or
// have expired is recognised: offsets alone cannot tell a rewind from a redelivery.
package fence

import (
	"cmp"
	"slices"
	"time"
)

// Fence says up to where an input partition is done. The zero value covers nothing.
//
// An offset alone does not tell that a record was forwarded: it may have been dropped as a copy,
// and may claim its ID for itself once that copy's claim has ended. So each step also says until
// when the claims were made that it settles. A record below a step that owns a younger claim is a
// first copy.
type Fence struct {
	TopicID     [16]byte // of the input; zero where the broker did not tell it
	LeaderEpoch int32    // of the last record that was handled
	Group       string   // that wrote it; empty in fences of kdedup before 0.2
	Store       string   // identity of the store that has the claims; empty in earlier fences
	steps       []step
	cuts        []cut

	missing Missing
	until   time.Time // when the last claim has ended that a missing record may own
}

// step: all records below next were handled, and that was committed, with claims made up to
// claimed. The steps of a fence rise in next and fall in claimed. There is one, but while offsets
// that were set back are read again after their claims have ended: then one more for each such
// rewind.
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

// EpochBelow is the leader epoch of what lies below an offset that goes on at the fence, or is
// lower; -1 if it is not known. With it the client notices that the log was cut meanwhile
// (KIP-320).
func (f Fence) EpochBelow(topicID [16]byte) int32 {
	if len(f.steps) == 0 || !SameTopic(f.TopicID, topicID) {
		return -1
	}
	return f.LeaderEpoch
}

// In returns the fence with the identity of the store that has the claims.
func (f Fence) In(store string) Fence {
	f.Store = store
	return f
}

// Claimed is when the youngest claim was made that the fence settles; zero if there is none.
func (f Fence) Claimed() (at time.Time) {
	for _, s := range f.steps {
		at = Latest(at, s.claimed)
	}
	return at
}

// SameTopic reports whether two IDs may be those of one topic. Brokers before 2.8, and some
// proxies, tell no IDs; during a rolling upgrade one fetch has the ID and the next one has not.
// What is unknown is taken for the same: offset, epoch and message ID must fit as well.
func SameTopic(a, b [16]byte) bool { return a == b || a == [16]byte{} || b == [16]byte{} }

// Of reports whether the fence is known to be of the topic with this ID.
func (f Fence) Of(topicID [16]byte) bool { return f.TopicID == topicID && topicID != [16]byte{} }

// Foreign reports whether the fence is known to be of another topic of the same name, which was
// deleted.
func (f Fence) Foreign(topicID [16]byte) bool { return !SameTopic(f.TopicID, topicID) }

// Covers reports whether the record was handled. Offsets that an unclean leader election makes be
// used again carry a higher epoch, and those of a recreated topic another topic ID: new records are
// never taken for old ones. Records without an epoch (message formats 0 and 1) are never covered.
func (f Fence) Covers(topicID [16]byte, offset int64, leaderEpoch int32) bool {
	if !SameTopic(f.TopicID, topicID) || leaderEpoch < 0 {
		return false
	}
	_, wasCut := f.cutAt(offset, leaderEpoch)
	return wasCut || f.reaches(offset, leaderEpoch) && !f.missing.has(offset)
}

// reaches reports whether a record stands below the end of the fence, in the log as it is.
func (f Fence) reaches(offset int64, leaderEpoch int32) bool {
	return offset < f.Next() && leaderEpoch <= f.LeaderEpoch
}

// Settled returns until when a claim by the record must have been made to be settled. The zero time
// comes before all claims.
func (f Fence) Settled(topicID [16]byte, offset int64, leaderEpoch int32) time.Time {
	if !f.Covers(topicID, offset, leaderEpoch) {
		return time.Time{}
	}
	if c, wasCut := f.cutAt(offset, leaderEpoch); wasCut && !f.reaches(offset, leaderEpoch) {
		return c.claimed
	}
	lowest := slices.IndexFunc(f.steps, func(s step) bool { return offset < s.next })
	return f.steps[lowest].claimed
}

// Span is what a fence moves over: records of one partition that were handled.
type Span struct {
	TopicID     [16]byte
	Next        int64     // one past the last record
	LeaderEpoch int32     // of the last record
	Claimed     time.Time // of the youngest claim that one of the records owns; zero without one
	Group       string

	Missing   Missing   // of the span, where unknown claims may lie
	Until     time.Time // when the last of these, and of those missing before, has ended
	Inherited []int64   // offsets of missing records for which a copy was forwarded
	Now       time.Time
}

// Advance returns the fence after a span was handled. A fence never goes back. While offsets that
// were set back are read again, the spans end below it, and with a lower fence the next session
// would take the rest of them for new. But with a later epoch the log ended there: an unclean
// election has cut it, and what comes behind is new.
func (f Fence) Advance(s Span) Fence {
	done := step{s.Next, s.Claimed}
	if SameTopic(f.TopicID, s.TopicID) && s.Next >= f.Next() {
		for _, old := range f.steps {
			done.claimed = Latest(done.claimed, old.claimed)
		}
	}
	to := f.merge(Fence{
		TopicID: s.TopicID, LeaderEpoch: s.LeaderEpoch, Group: s.Group, steps: []step{done},
		cuts: f.cuts, missing: f.missing, until: f.until,
	})
	if f.Foreign(s.TopicID) || s.Now.After(to.until) {
		to.missing, to.until = nil, time.Time{}
	}
	if len(s.Missing) > 0 {
		to.missing = slices.Clone(to.missing)
	}
	for _, r := range s.Missing {
		to.missing = to.missing.Add(r.From, r.To)
	}
	to.until = Latest(to.until, s.Until)
	for _, offset := range s.Inherited {
		to.missing = to.missing.without(offset)
	}
	if len(to.missing) == 0 {
		to.until = time.Time{}
	}
	return to.withoutKnown()
}

// Merge returns what both fences know together; o was written later.
func (f Fence) Merge(o Fence) Fence {
	// Offsets of one log do not rise while epochs fall: a member that was given up tells of the log
	// before.
	if f.Of(o.TopicID) && o.LeaderEpoch >= 0 && o.LeaderEpoch < f.LeaderEpoch &&
		o.Next() > f.Next() {
		f.cuts = union(f.cuts, o.cutOff(unknown))
		return f
	}
	return f.merge(o).withoutKnown()
}

func (f Fence) merge(o Fence) Fence {
	back := o.Next() < f.Next()
	switch {
	case !SameTopic(f.TopicID, o.TopicID):
		return o
	case back && o.LeaderEpoch > f.LeaderEpoch: // the log was cut: what is left of it was handled
		o.steps = stairs(below(f.steps, o.Next()), o.steps)
		o.cuts = union(f.cutOff(unknown), o.cuts)
		return o
	}
	merged := Fence{TopicID: o.TopicID, LeaderEpoch: o.LeaderEpoch, Group: o.Group, Store: o.Store,
		steps: stairs(f.steps, o.steps)}
	if merged.TopicID == [16]byte{} {
		merged.TopicID = f.TopicID
	}
	merged.missing, merged.until = o.missing, o.until
	if back {
		merged.LeaderEpoch, merged.missing, merged.until = f.LeaderEpoch, f.missing, f.until
	}
	merged.cuts = union(f.cuts, o.cuts)
	return merged
}

// below is what steps say of offsets below one.
func below(steps []step, next int64) []step {
	left := slices.Clone(steps)
	for i := range left {
		left[i].next = min(left[i].next, next)
	}
	return left
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

// Latest is the later one of two times.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
