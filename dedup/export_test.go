package dedup

// Fold is what Judge does before it asks the store.
func (d *Deduper) Fold(messages []Message) []Claim {
	batch, _ := d.fold(messages)
	return batch.claims
}

// Verdicts is what Judge does after it.
func (d *Deduper) Verdicts(messages []Message, answers []Answer) []Judgement {
	return d.folded.judge(messages, answers)
}
