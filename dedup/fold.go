package dedup

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// folded is a batch reduced to one claim per distinct ID. Its memory is used again for the next batch.
type folded struct {
	claims       []Claim
	claimOf      []int32         // per message: index into claims, or -1 without an ID
	missing      []MissingReason // per message, where claimOf is -1; nil if no ID is missing
	fingerprints []Fingerprint   // per message
	seen         claimTable
}

// fold makes one claim per distinct ID, for the record that comes first in the batch: equal IDs
// that went to the store one by one would race against each other for nothing. The result is good until
// the next call.
func (d *Deduper) fold(messages []Message) *folded {
	f := &d.folded
	f.begin(len(messages))
	for i, m := range messages {
		id, missing := d.extractor.Extract(m.Record)
		if missing != NotMissing {
			f.setMissing(i, missing)
			continue
		}
		f.fingerprints[i] = d.fingerprints.Of(m.Record)
		claim, isNew := f.seen.find(f.claims, id)
		if isNew {
			f.claims = append(f.claims, Claim{ID: id, Owner: m.Owner, Fingerprint: f.fingerprints[i]})
		}
		f.claimOf[i] = claim
	}
	return f
}

func (f *folded) begin(messages int) {
	f.claims = slices.Grow(f.claims[:0], messages)
	f.claimOf = slices.Grow(f.claimOf[:0], messages)[:messages]
	f.fingerprints = slices.Grow(f.fingerprints[:0], messages)[:messages]
	f.missing = nil
	f.seen.begin(messages)
}

// letGo drops the IDs, which share memory with the records.
func (f *folded) letGo() { clear(f.claims) }

func (f *folded) setMissing(i int, reason MissingReason) {
	if f.missing == nil {
		f.missing = make([]MissingReason, len(f.claimOf))
	}
	f.claimOf[i], f.missing[i] = -1, reason
}

func (f *folded) judge(messages []Message, answers []Answer) []Judgement {
	judgements := make([]Judgement, len(messages))
	for i, m := range messages {
		if f.claimOf[i] < 0 {
			judgements[i] = Judgement{Verdict: VerdictMissing, Missing: f.missing[i]}
			continue
		}
		judgements[i] = judge(m, f.fingerprints[i], answers[f.claimOf[i]])
	}
	return judgements
}

// claimTable finds the claim of an ID within a batch, in a quarter of the memory of a map.
type claimTable struct {
	seed  maphash.Seed
	slots []int32 // 1 + index of a claim, 0 where there is none; a power of two, at most half of them taken
}

// begin empties the table, and makes room for so many claims.
func (t *claimTable) begin(claims int) {
	size := 2 << bits.Len(uint(claims))
	t.slots = slices.Grow(t.slots[:0], size)[:size]
	clear(t.slots)
}

// find returns the index of the claim with an ID. If there is none it notes one as the next of the claims.
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
