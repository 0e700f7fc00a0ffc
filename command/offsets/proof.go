package offsets

import (
	"context"
	"fmt"
)

// proof tells which records of a partition of the clean topic come from records of the input that
// lie below a limit.
type proof struct {
	options   Options
	partition int32
	limit     int64
	times     times
	from      int64 // on the clean topic; all records before it come from below the limit
	highest   int64 // of the owners so far, without Originals
}

// proofs begin where the clean topic begins, or where time says.
func (o Options) proofs(ctx context.Context, limits map[int32]int64) (map[int32]*proof, error) {
	proofs := make(map[int32]*proof)
	for p, limit := range limits {
		if part, ok := o.Clean.Partitions[p]; ok {
			proofs[p] = &proof{options: o, partition: p, limit: limit, from: part.Start,
				highest: -1}
		}
	}
	if !o.Originals {
		return proofs, nil
	}
	for p, limit := range limits {
		if end := o.Input.Partitions[p].End; limit > end {
			return nil, fmt.Errorf("partition %d of %s ends at %d, before the offset %d: the log "+
				"was cut. Set the group's offset to a place that is there, and try again", p,
				o.Input.Topic, end, limit)
		}
	}
	return proofs, o.narrow(ctx, proofs)
}

// below reports for each record whether it is proven to come from below the limit: by its time, or
// by its owner. An owner that is gone from the input proves nothing: a copy stands for it, and may
// come from behind the limit.
func (p *proof) below(ctx context.Context, records []source) ([]bool, error) {
	proven := make([]bool, len(records))
	var ask []int
	for i, r := range records {
		switch {
		case p.times.before(r.record):
			proven[i] = true
		case !r.known || r.offset >= p.limit:
		case p.options.Originals:
			ask = append(ask, i)
		case r.offset > p.highest:
			p.highest, proven[i] = r.offset, true
		}
	}
	return proven, p.options.compare(ctx, p.partition, records, ask, proven)
}
