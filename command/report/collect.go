package report

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// collector is the first pass: it counts what does not need the order of IDs, and gives the rest to
// the sorter.
type collector struct {
	options      Options
	fingerprints dedup.Fingerprinter
	sorter       *sorter

	total      int64 // offsets to read
	records    int64
	idBytes    int64
	missing    map[dedup.MissingReason]int64
	apart      map[dedup.Verdict]int64 // records in which no ID is looked for
	partitions map[int32]*tally
	headers    *headerValues // nil without a header
	clock      clock
	sample     *orderSample
	contents   *contents
	spellings  *spellings
	documents  messageid.Documents // of records with an ID
	series     *series
}

// tally is what is counted for each partition, and for each value of the header.
type tally struct{ records, missing, duplicates, conflicts int64 }

func (t *tally) copies() int64 { return t.duplicates + t.conflicts }

func newCollector(o Options, s *sorter) *collector {
	c := &collector{
		options: o, fingerprints: o.Extractor.Fingerprinter(), sorter: s, total: o.Log.Offsets(),
		missing: make(map[dedup.MissingReason]int64), apart: make(map[dedup.Verdict]int64),
		partitions: make(map[int32]*tally),
		clock:      newClock(o.Now()), sample: newOrderSample(), series: newSeries(),
		contents: newContents(o), spellings: newSpellings(),
	}
	if o.Header != "" {
		c.headers = newHeaderValues(o.Header)
	}
	for p := range o.Log.Partitions {
		c.partitions[p] = &tally{}
	}
	return c
}

// add takes records of one partition, in its order.
func (c *collector) add(ctx context.Context, records []*kgo.Record) error {
	for _, r := range records {
		id, missing, err := dedup.ExtractNow(ctx, c.options.Extractor, r)
		if err != nil {
			return err
		}
		if err := c.addRecord(ctx, r, id, missing); err != nil {
			return err
		}
	}
	c.options.Progress(c.records, c.total)
	return nil
}

func (c *collector) addRecord(
	ctx context.Context, r *kgo.Record, id dedup.ID, missing dedup.MissingReason,
) error {
	at := c.clock.read(r)
	c.records++
	c.series.add(at, 1, 0)
	partition := c.partitions[r.Partition]
	partition.records++
	var header uint16
	if c.headers != nil {
		header = c.headers.number(r)
		c.headers.tallies[header].records++
	}
	if v := missing.Verdict(); missing != dedup.NotMissing && v != dedup.VerdictMissing {
		c.apart[v]++
		return nil
	}
	if missing != dedup.NotMissing {
		c.missing[missing]++
		partition.missing++
		if c.headers != nil {
			c.headers.tallies[header].missing++
		}
		return nil
	}
	c.idBytes += int64(len(id))
	c.sample.add(id, at)
	c.spellings.add(id)
	c.documents.Count(r.Value)
	fingerprint := c.fingerprints.Of(r)
	if err := c.contents.add(ctx, r, id, fingerprint); err != nil {
		return err
	}
	if err := c.sorter.add(
		id, occurrence{at, r.Partition, r.Offset, fingerprint, header},
	); err != nil {
		return fmt.Errorf("sort the ids: %w", err)
	}
	return nil
}
