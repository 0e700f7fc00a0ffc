package offsets

import (
	"context"
	"slices"

	"github.com/kdedup/kdedup/connect/logreader"
)

// Clean returns where the consumer of an input, which has committed the offsets by partition, goes
// on on the clean topic: at the first record there that is not proven to come from before the
// offset. So it leaves out no record that comes from there or behind it. An offset that kdedup has
// not reached yet gives the end.
func Clean(ctx context.Context, o Options, committed map[int32]int64) (map[int32]Place, error) {
	proofs, err := o.proofs(ctx, committed)
	if err != nil {
		return nil, err
	}
	walks, ranges := make(map[int32]*walk), make(map[int32]logreader.Range)
	for p, proof := range proofs {
		part := o.Clean.Partitions[p]
		ranges[p] = logreader.Range{Start: proof.from, End: part.End}
		walks[p] = &walk{proof: proof, place: part.End}
	}
	err = o.each(ctx, ranges, func(p int32, records []source) error {
		return walks[p].take(ctx, records)
	})
	places := make(map[int32]Place)
	for p, w := range walks {
		places[p] = Place{Offset: w.place, Again: w.records - w.fresh.count}
	}
	return places, err
}

// walk goes along a partition of the clean topic.
type walk struct {
	*proof
	found   bool
	place   int64
	records int64 // from the place on
	fresh   fresh // those of them that the consumer cannot have had
}

func (w *walk) take(ctx context.Context, records []source) error {
	if !w.found {
		proven, err := w.below(ctx, records)
		if err != nil {
			return err
		}
		n := slices.Index(proven, false)
		if n < 0 {
			return nil
		}
		records = records[n:]
		w.found, w.place = true, records[0].at
	}
	for _, r := range records {
		w.records++
		switch {
		case r.known && r.offset >= w.limit:
			w.fresh.add(r.offset)
		case r.known:
			w.fresh.removeFrom(0)
		}
	}
	return nil
}

// fresh counts records whose owners rise along the clean topic. If a later record has the same
// owner or one before it, then the ID of the earlier record came again, and the consumer may have
// had that record. Owners are kept in runs, which are removed as a whole: the count is at most
// what it should be.
type fresh struct {
	runs  []run
	count int64
}

// run has the highest owner of as many records in a row.
type run struct{ highest, records int64 }

const runRecords = 1024

func (f *fresh) add(owner int64) {
	f.removeFrom(owner)
	last := len(f.runs) - 1
	if last < 0 || f.runs[last].records == runRecords {
		f.runs, last = append(f.runs, run{}), last+1
	}
	f.runs[last].highest = owner
	f.runs[last].records++
	f.count++
}

func (f *fresh) removeFrom(owner int64) {
	for last := len(f.runs) - 1; last >= 0 && f.runs[last].highest >= owner; last-- {
		f.count -= f.runs[last].records
		f.runs = f.runs[:last]
	}
}
