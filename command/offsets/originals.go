package offsets

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
)

// apart is how many offsets lie between two owners that are not read together.
const apart = 10_000

// compare marks those of the records, by their indexes in ask, whose owner is on the input and has
// the same content.
func (o Options) compare(
	ctx context.Context, p int32, records []source, ask []int, same []bool,
) error {
	slices.SortFunc(ask, func(a, b int) int {
		return cmp.Compare(records[a].offset, records[b].offset)
	})
	for len(ask) > 0 {
		n := 1
		for n < len(ask) && records[ask[n]].offset-records[ask[n-1]].offset < apart {
			n++
		}
		if err := o.compareNear(ctx, p, records, ask[:n], same); err != nil {
			return fmt.Errorf("look for the owners: %w", err)
		}
		ask = ask[n:]
	}
	return nil
}

// compareNear reads the part of the input where the owners lie.
func (o Options) compareNear(
	ctx context.Context, p int32, records []source, ask []int, same []bool,
) error {
	first, last := records[ask[0]].offset, records[ask[len(ask)-1]].offset
	part := o.Input
	// Offsets below the start are gone, and the reader would look for them at the start.
	start := max(first, part.Partitions[p].Start)
	part.Partitions = map[int32]logreader.Range{p: {Start: start, End: last + 1}}
	return logreader.Read(ctx, o.Connection, part, func(owners []*kgo.Record) error {
		for _, owner := range owners {
			for len(ask) > 0 && records[ask[0]].offset < owner.Offset {
				ask = ask[1:]
			}
			for len(ask) > 0 && records[ask[0]].offset == owner.Offset {
				r := records[ask[0]].record
				same[ask[0]] = bytes.Equal(r.Key, owner.Key) && bytes.Equal(r.Value, owner.Value)
				ask = ask[1:]
			}
		}
		return nil
	})
}
