package dedup

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// folded is a batch reduced to one claim per distinct ID. Its memory is used again for the next
// batch.
type folded struct {
	claims       []Claim
	claimOf      []int32         // per message: index into claims, or -1 without an ID
	missing      []MissingReason // per message, where claimOf is -1; nil if no ID is missing
	fingerprints []Fingerprint   // per message
	told         []bool          // per claim: its owner was in the batch already
	unresolved   int             // messages of which it is not known yet whether they have an ID
	seen         claimTable
}

// fold makes one claim per distinct ID, for the record that comes first in the batch: equal IDs
// that went to the store one by one would race against each other for nothing. The result is good
// until the next call. The only error is a Tripped.
func (d *Deduper) fold(messages []Message) (f *folded, err error) {
	f = &d.folded
	f.begin(len(messages))
	i := 0
	defer Catch(&i, &err)
	for ; i < len(messages); i++ {
		m := &messages[i]
		id, missing := d.extractor.Extract(m.Record)
		if missing != NotMissing {
			f.setMissing(i, missing)
			continue
		}
		f.fingerprints[i] = d.fingerprints.Of(m.Record)
		claim, isNew := f.seen.find(f.claims, id)
		if isNew {
			f.claims = append(f.claims,
				Claim{ID: id, Owner: m.Owner, Fingerprint: f.fingerprints[i], After: m.Settled})
		} else if !m.Owner.Same(f.claims[claim].Owner) {
			f.claims[claim].Copied = true
		}
		f.claimOf[i] = claim
	}
	return f, nil
}

func (f *folded) begin(messages int) {
	f.claims = slices.Grow(f.claims[:0], messages)
	f.claimOf = slices.Grow(f.claimOf[:0], messages)[:messages]
	f.fingerprints = slices.Grow(f.fingerprints[:0], messages)[:messages]
	f.missing, f.unresolved = nil, 0
	f.seen.begin(messages)
}

// letGo drops the IDs, which share memory with the records.
func (f *folded) letGo() { clear(f.claims) }

func (f *folded) setMissing(i int, reason MissingReason) {
	if f.missing == nil {
		f.missing = make([]MissingReason, len(f.claimOf))
	}
	f.claimOf[i], f.missing[i] = -1, reason
	if reason == MissingUnresolved {
		f.unresolved++
	}
}

func (f *folded) judge(messages []Message, answers []Answer) []Judgement {
	judgements := make([]Judgement, len(messages))
	f.told = slices.Grow(f.told[:0], len(answers))[:len(answers)]
	clear(f.told)
	for i, m := range messages {
		claim := f.claimOf[i]
		if claim < 0 {
			judgements[i] = Judgement{Verdict: f.missing[i].Verdict(), Missing: f.missing[i]}
			continue
		}
		judgements[i] = judge(m, f.fingerprints[i], answers[claim])
		if judgements[i].Own() && !f.firstTold(claim) {
			judgements[i].Verdict = VerdictDuplicate
		}
	}
	return judgements
}

// firstTold is false for a record that is in the batch a second time. A client that goes back in
// the log while a batch is filled delivers such a batch; both would recognise themselves.
func (f *folded) firstTold(claim int32) bool {
	if f.told[claim] {
		return false
	}
	f.told[claim] = true
	return true
}

// claimTable finds the claim of an ID within a batch, in a quarter of the memory of a map.
type claimTable struct {
	seed maphash.Seed
	// 1 + index of a claim, 0 where there is none; a power of two, at most half of them taken
	slots []int32
}

// begin empties the table, and makes room for n claims.
func (t *claimTable) begin(claims int) {
	size := 2 << bits.Len(uint(claims))
	t.slots = slices.Grow(t.slots[:0], size)[:size]
	clear(t.slots)
}

// find returns the index of the claim with an ID. If there is none it notes one as the next of the
// claims.
func (t *claimTable) find(claims []Claim, id ID) (claim int32, isNew bool) {
	last := uint64(len(t.slots) - 1)
	for slot := maphash.String(t.seed, string(id)) & last; ; slot = (slot + 1) & last {
		claim = t.slots[slot] - 1
		if claim < 0 {
			t.slots[slot] = int32(len(claims)) + 1
			return int32(len(claims)), true
		}
		if claims[claim].ID == id {
			return claim, false
		}
	}
}
