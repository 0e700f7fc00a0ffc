package report

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
	case at > c.now && !known:
		// When it came is not known, and the next records of the partition may be much older than
		// now.
		c.ahead++
		if c.started {
			return c.last
		}
		return c.now
	case at > c.now:
		c.ahead++
		at = latest
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
