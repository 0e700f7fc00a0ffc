package dedup

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/pause"
)

// resolve waits until the extractor knows which of the batch's records have IDs, as insist waits
// for the store. After an outage that lasts too long the rest passes unclaimed.
func (d *Deduper) resolve(ctx context.Context, messages []Message) error {
	resolver, does := d.extractor.(Resolver)
	if !does {
		return nil
	}
	d.unresolved.leaveOld(d.retry)
	defer d.observer.Ended() // also if the batch is given up: then nobody waits any more
	for round := 1; ; round++ {
		err := resolver.Resolve(ctx, d.folded.open(messages))
		if ctx.Err() != nil {
			return d.unresolved.interrupted(ctx)
		}
		batch, tripped := d.fold(messages)
		if tripped != nil {
			return tripped
		}
		if batch.unresolved == 0 {
			d.unresolved.ended()
			return nil
		}
		d.observer.Unresolved(batch.unresolved)
		d.unresolved.note(batch.unresolved, err)
		if d.unresolved.outlasts(d.retry) {
			return nil
		}
		if !pause.For(ctx, d.retry.pause(round)) {
			return d.unresolved.interrupted(ctx)
		}
	}
}

// open lists the records of which it is not known whether they have IDs.
func (f *folded) open(messages []Message) (records []*kgo.Record) {
	for i := range messages {
		if f.claimOf[i] < 0 && f.missing[i] == MissingUnresolved {
			records = append(records, messages[i].Record)
		}
	}
	return records
}

// ExtractNow is Extract for who waits for no outage: it asks at once for what the extractor lacks.
func ExtractNow(ctx context.Context, e Extractor, r *kgo.Record) (ID, MissingReason, error) {
	id, missing := e.Extract(r)
	resolver, does := e.(Resolver)
	if missing != MissingUnresolved || !does {
		return id, missing, nil
	}
	if err := resolver.Resolve(ctx, []*kgo.Record{r}); err != nil {
		return "", missing, err
	}
	id, missing = e.Extract(r)
	return id, missing, nil
}
