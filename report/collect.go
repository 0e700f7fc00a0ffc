package report

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// collector is the first pass: it counts what does not need the order of IDs, and gives the rest to
// the sorter.
type collector struct {
	options      Options
	fingerprints *dedup.Fingerprinter
	sorter       *sorter

	total      int64 // offsets to read
	records    int64
	idBytes    int64
	missing    map[dedup.MissingReason]int64
	partitions map[int32]*tally
	headers    *headerValues // nil without a header
	clock      clock
	sample     *orderSample
	series     *series
}

// tally is what is counted for each partition, and for each value of the header.
type tally struct{ records, missing, duplicates, conflicts int64 }

func (t *tally) copies() int64 { return t.duplicates + t.conflicts }

func newCollector(o Options, s *sorter) *collector {
	c := &collector{
		options: o, fingerprints: dedup.NewFingerprinter(), sorter: s, total: o.Log.Offsets(),
		missing: make(map[dedup.MissingReason]int64), partitions: make(map[int32]*tally),
		clock: newClock(o.Now()), sample: newOrderSample(), series: newSeries(),
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
func (c *collector) add(records []*kgo.Record) error {
	for _, r := range records {
		if err := c.addRecord(r); err != nil {
			return fmt.Errorf("sort the ids: %w", err)
		}
	}
	c.options.Progress(c.records, c.total)
	return nil
}

func (c *collector) addRecord(r *kgo.Record) error {
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
	id, missing := c.options.Extractor.Extract(r)
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
	return c.sorter.add(id, occurrence{at, r.Partition, r.Offset, c.fingerprints.Of(r), header})
}

// headerValues numbers the values of a producer's header. What comes after the first maxHeaderValues
// different ones is counted together.
type headerValues struct {
	name    string
	numbers map[string]uint16
	values  []string
	tallies []*tally
}

const (
	maxHeaderValues = 1000
	maxHeaderBytes  = 200 // of a value; longer ones are cut
)

// The numbers of values that have no text of their own.
const (
	headerAbsent uint16 = iota
	headerOthers
	headerFirst
)

func newHeaderValues(name string) *headerValues {
	return &headerValues{
		name: name, numbers: make(map[string]uint16),
		values: []string{"(no such header)", "(all other values)"}, tallies: []*tally{{}, {}},
	}
}

func (h *headerValues) number(r *kgo.Record) uint16 {
	for i := range r.Headers {
		if r.Headers[i].Key != h.name {
			continue
		}
		value := r.Headers[i].Value
		value = value[:min(len(value), maxHeaderBytes)]
		if n, known := h.numbers[string(value)]; known {
			return n
		}
		return h.learn(string(value))
	}
	return headerAbsent
}

func (h *headerValues) learn(value string) uint16 {
	if len(h.numbers) == maxHeaderValues {
		return headerOthers
	}
	n := uint16(len(h.values))
	h.numbers[value] = n
	h.values = append(h.values, value)
	h.tallies = append(h.tallies, &tally{})
	return n
}

// clock tells when a record came to the log, as far as its timestamps show: the latest timestamp of
// its partition up to it. A record that is produced again with its old timestamp, as a mirror does,
// came when its neighbours came. Timestamps ahead of this machine's clock are left out: one of them
// would move all that follow.
type clock struct {
	now         int64
	partitions  map[int32]int64
	types       [3]int64 // records by kind of timestamp: producer, broker, none
	ahead       int64    // records with a timestamp ahead of now
	backward    int64    // records with an earlier timestamp than one before them
	farthest    int64    // how far the farthest of them went back, milliseconds
	first, last int64    // of all records
	started     bool
}

// aheadTolerance is for machines whose clocks differ a little.
const aheadTolerance = 5 * time.Minute

func newClock(now time.Time) clock {
	return clock{now: now.Add(aheadTolerance).UnixMilli(), partitions: make(map[int32]int64)}
}

func (c *clock) read(r *kgo.Record) int64 {
	at := r.Timestamp.UnixMilli()
	c.types[timestampKind(r)]++
	latest, known := c.partitions[r.Partition]
	switch {
	case at > c.now:
		c.ahead++
		at = c.now
		if known {
			at = latest
		}
	case known && at < latest:
		c.backward++
		c.farthest = max(c.farthest, latest-at)
		at = latest
	}
	c.partitions[r.Partition] = at
	if !c.started || at < c.first {
		c.first = at
	}
	c.last = max(c.last, at)
	c.started = true
	return at
}

func timestampKind(r *kgo.Record) int {
	switch r.Attrs.TimestampType() {
	case 0:
		return 0
	case 1:
		return 1
	}
	return 2
}

// name is for the report.
func (c *clock) name() string {
	switch {
	case c.types[0] > 0 && c.types[1] > 0:
		return ClockMixed
	case c.types[1] > 0:
		return ClockBroker
	}
	return ClockProducer
}
