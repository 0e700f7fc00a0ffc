package dedup

// folded is a batch reduced to one claim per distinct ID.
type folded struct {
	claims       []Claim
	claimOf      []int32         // per message: index into claims, or -1 without an ID
	missing      []MissingReason // per message, where claimOf is -1
	fingerprints []Fingerprint   // per message
}

// fold makes one claim per distinct ID, for the record that comes first in the batch: equal IDs
// that went to the store one by one would race against each other for nothing.
func (d *Deduper) fold(messages []Message) *folded {
	f := &folded{
		claims:       make([]Claim, 0, len(messages)),
		claimOf:      make([]int32, len(messages)),
		fingerprints: make([]Fingerprint, len(messages)),
	}
	seen := make(map[ID]int32, len(messages))
	for i, m := range messages {
		id, missing := d.extractor.Extract(m.Record)
		if missing != NotMissing {
			f.setMissing(i, missing)
			continue
		}
		f.fingerprints[i] = d.fingerprints.Of(m.Record)
		claim, ok := seen[id]
		if !ok {
			claim = int32(len(f.claims))
			seen[id] = claim
			f.claims = append(f.claims, Claim{ID: id, Owner: m.Owner, Fingerprint: f.fingerprints[i]})
		}
		f.claimOf[i] = claim
	}
	return f
}

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
