package offsets

import (
	"context"
	"math"
	"time"

	"github.com/kdedup/kdedup/connect/logreader"
)

// lately is how many offsets before the consumer's place are looked at for the last record that it
// has had.
const lately = 1024

// Input returns where the consumer of a clean topic goes on on the input: at or before each record
// of which one stands on the clean topic at the consumer's offset or behind it, or will. It goes on
// behind the last record that it has had if that lies before them. Copies that were dropped behind
// the place come again.
func Input(ctx context.Context, o Options, committed map[int32]int64) (map[int32]Place, error) {
	ways, err := o.ahead(ctx, committed)
	if err == nil {
		err = o.behind(ctx, ways)
	}
	if err != nil {
		return nil, err
	}
	limits := make(map[int32]int64)
	for p, w := range ways {
		limits[p] = w.place(o.Input.Partitions[p])
	}
	return o.repeats(ctx, ways, limits)
}

// way is that of one partition back to the input.
type way struct {
	had logreader.Range // the part of the clean topic that the consumer has had
	// bound is the least offset on the input of what the consumer has not had.
	bound int64
	// Records that it has not had, without an owner on the input: the time of the oldest, or no
	// time tells.
	oldest  time.Time
	untimed bool
	last    int64 // behind the owner of the last record that it has had, below bound
}

// place is the bound if nothing tells a better one.
func (w *way) place(input logreader.Range) int64 {
	at := w.last
	switch {
	case w.untimed || w.had.Start == w.had.End:
		return input.Start
	case at == 0 && w.bound == math.MaxInt64:
		return input.Start
	case at == 0:
		at = w.bound
	}
	return max(at, input.Start)
}

// ahead looks at all that the consumer has not had.
func (o Options) ahead(ctx context.Context, committed map[int32]int64) (map[int32]*way, error) {
	ways, ranges := make(map[int32]*way), make(map[int32]logreader.Range)
	for p, offset := range committed {
		part, ok := o.Clean.Partitions[p]
		if !ok {
			continue
		}
		next := min(max(offset, part.Start), part.End)
		ranges[p] = logreader.Range{Start: next, End: part.End}
		ways[p] = &way{had: logreader.Range{Start: part.Start, End: next}, bound: math.MaxInt64}
		if o.Handled != nil {
			ways[p].bound = o.Handled[p] // 0, which is before all, if it has committed nothing
		}
	}
	err := o.each(ctx, ranges, func(p int32, records []source) error {
		return ways[p].take(ctx, o, p, records)
	})
	if err != nil {
		return nil, err
	}
	for p, w := range ways {
		if w.oldest.IsZero() {
			continue
		}
		at, err := firstFrom(ctx, o.Connection, o.Input, p, w.oldest)
		if err != nil {
			return nil, err
		}
		w.bound = min(w.bound, at)
	}
	return ways, nil
}

// take finds the least place among those of the records. An owner that is gone from the input is
// none.
func (w *way) take(ctx context.Context, o Options, p int32, records []source) error {
	there := make([]bool, len(records))
	var ask []int
	for i, r := range records {
		if there[i] = r.known && !o.Originals; r.known && o.Originals {
			ask = append(ask, i)
		}
	}
	err := o.compare(ctx, p, records, ask, there)
	for i, r := range records {
		switch {
		case there[i]:
			w.bound = min(w.bound, r.offset)
		case !o.Originals || !timed(r.record):
			w.untimed = true
		case w.oldest.IsZero() || r.record.Timestamp.Before(w.oldest):
			w.oldest = r.record.Timestamp
		}
	}
	return err
}

// behind looks for the last record that the consumer has had.
func (o Options) behind(ctx context.Context, ways map[int32]*way) error {
	ranges := make(map[int32]logreader.Range)
	for p, w := range ways {
		ranges[p] = logreader.Range{Start: max(w.had.Start, w.had.End-lately), End: w.had.End}
	}
	return o.each(ctx, ranges, func(p int32, records []source) error {
		for _, r := range records {
			if r.known && r.offset < ways[p].bound {
				ways[p].last = max(ways[p].last, r.offset+1)
			}
		}
		return nil
	})
}

// repeats counts what the consumer has had and is not proven to come from before its place.
func (o Options) repeats(
	ctx context.Context, ways map[int32]*way, limits map[int32]int64,
) (map[int32]Place, error) {
	proofs, err := o.proofs(ctx, limits)
	if err != nil {
		return nil, err
	}
	places, ranges := make(map[int32]Place), make(map[int32]logreader.Range)
	for p, proof := range proofs {
		places[p] = Place{Offset: limits[p]}
		ranges[p] = logreader.Range{Start: proof.from, End: ways[p].had.End}
	}
	err = o.each(ctx, ranges, func(p int32, records []source) error {
		proven, err := proofs[p].below(ctx, records)
		place := places[p]
		for _, below := range proven {
			if !below {
				place.Again++
			}
		}
		places[p] = place
		return err
	})
	return places, err
}
