package command

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/bits"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/lab/workload"
)

// advise tells how large the store becomes with the topic's settings, at the rate that the user
// named, else at the topic's own, else at the one that was measured.
func (f *benchFlags) advise(
	ctx context.Context, c config.Config, log *slog.Logger, measured float64,
) []result {
	found, err := inspectInput(ctx, c, f.own, log)
	if err != nil {
		log.Warn("the topic is not looked at; the advice is for the measured rate",
			"topic", f.own.Input, "error", err)
	}
	a := advice{
		rows:  c.Store.Type == config.StoreCassandra && !c.Store.Logs(),
		topic: f.own, idBytes: workload.UUIDBytes,
		rate: measured, rateNote: "as measured here: the most there can be; --rate names another",
	}
	if found.idBytes > 0 {
		a.idBytes = found.idBytes
	}
	switch {
	case f.rate > 0:
		a.rate, a.rateNote = f.rate, "--rate"
	case found.rate > 0:
		a.rate, a.rateNote = found.rate,
			"as "+f.own.Input+" had in the last 24 hours; --rate names another"
	}
	return append(a.results(), result{"id order", found.order, orderNotes[found.order]})
}

// advice is about one topic in its store.
type advice struct {
	rows     bool // each claim is a row in Cassandra
	topic    config.Topic
	idBytes  int
	rate     float64 // records a second
	rateNote string
}

// largestPartition is where Cassandra itself begins to warn of a partition, in bytes
// (compaction_large_partition_warning_threshold).
const largestPartition = 100 << 20

func (a advice) claims() float64 { return a.rate * a.topic.TTL.Seconds() }

// bytes are those of the claims that Cassandra must keep, in each replica. It keeps others too,
// until it compacts them.
func (a advice) bytes() float64 {
	return a.rate * (a.topic.TTL + cassandra.Grace).Seconds() * float64(
		cassandra.RowBytes(a.idBytes))
}

// bucketsNeeded is the least power of two with which no bucket grows beyond the limit.
func (a advice) bucketsNeeded() int {
	least := math.Ceil(a.bytes() / largestPartition)
	return 1 << bits.Len(uint(max(least, 1))-1)
}

func (a advice) results() []result {
	results := []result{
		{"advice for records/s", a.rate, a.rateNote},
		{"claims kept", a.claims(),
			fmt.Sprintf("rate x ttl (%v); copies take no room", a.topic.TTL)},
	}
	if !a.rows {
		return results
	}
	return append(results,
		result{"disk GiB", a.bytes() / (1 << 30), a.diskNote()},
		result{"claims per bucket", a.claims() / float64(a.topic.Buckets),
			fmt.Sprintf("of %d buckets", a.topic.Buckets)},
		result{"bucket MiB", a.bytes() / float64(a.topic.Buckets) / (1 << 20), a.bucketNote()},
	)
}

func (a advice) diskNote() string {
	return fmt.Sprintf("in each replica: %d bytes a claim with IDs of %d, for ttl and "+
		"gc_grace_seconds; have three times as much, see docs/performance.md",
		cassandra.RowBytes(a.idBytes), a.idBytes)
}

func (a advice) bucketNote() string {
	if needed := a.bucketsNeeded(); needed > a.topic.Buckets {
		return fmt.Sprintf(
			"Cassandra warns above 100: take buckets: %d, before the scope has claims", needed)
	}
	return "Cassandra warns above 100"
}

// Orders of IDs.
const (
	orderTime    = "time"
	orderRandom  = "random"
	orderUnknown = "unknown"
)

var orderNotes = map[string]string{
	orderTime: "as with UUIDv7, ULID or snowflake: an old table answers as fast as a new one; " +
		"measure with --time-ordered",
	orderRandom:  "as with UUIDv4: a large table is slower than the empty one of this measurement",
	orderUnknown: "too few records to tell",
}
