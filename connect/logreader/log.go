package logreader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Bounds say which part of a topic is read. The zero value is all that is there.
type Bounds struct {
	// From and To bound the timestamps; To is excluded, and zero times bound nothing. Each
	// partition is read from the first record that is not before From up to the first that is not
	// before To.
	From, To time.Time
	// MaxRecords reads the newest records only: about as many, in proportion from each partition.
	// It counts offsets, of which compaction and transactions take some. Zero means all.
	MaxRecords int64
}

// Range is a part of a partition: the offsets from Start up to End, which is excluded.
type Range struct{ Start, End int64 }

// Log is the part of a topic that is there to be read. The ends are those of the time when it was
// described: what is produced later, or was in an open transaction then, does not belong to it.
type Log struct {
	Topic      string
	TopicID    [16]byte // zero on brokers without topic IDs (before 2.8)
	Partitions map[int32]Range
}

// Offsets is the number of offsets in all ranges: at least the number of records.
func (l Log) Offsets() int64 {
	var n int64
	for _, r := range l.Partitions {
		n += r.End - r.Start
	}
	return n
}

// Describe asks the brokers for the part of a topic that lies within the bounds.
func Describe(ctx context.Context, client *kgo.Client, topic string, b Bounds) (Log, error) {
	admin := kadm.NewClient(client)
	details, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return Log{}, fmt.Errorf("describe topic %s: %w", topic, err)
	}
	detail := details[topic]
	if len(detail.Partitions) == 0 && detail.Err == nil ||
		errors.Is(detail.Err, kerr.UnknownTopicOrPartition) {
		return Log{}, fmt.Errorf("topic %s does not exist", topic)
	}
	if detail.Err != nil {
		return Log{}, fmt.Errorf("describe topic %s: %w", topic, detail.Err)
	}
	log := Log{Topic: topic, TopicID: detail.ID, Partitions: make(map[int32]Range)}
	if err := log.bound(ctx, admin, b); err != nil {
		return Log{}, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	log.newest(b.MaxRecords)
	return log, nil
}

// bound looks up where each partition begins and ends.
func (l *Log) bound(ctx context.Context, admin *kadm.Client, b Bounds) error {
	starts, err := admin.ListStartOffsets(ctx, l.Topic)
	if err := cmp.Or(err, starts.Error()); err != nil {
		return err
	}
	ends, err := admin.ListCommittedOffsets(ctx, l.Topic)
	if err := cmp.Or(err, ends.Error()); err != nil {
		return err
	}
	for p, start := range starts[l.Topic] {
		l.Partitions[p] = Range{start.Offset, max(start.Offset, ends[l.Topic][p].Offset)}
	}
	cut := func(at time.Time, narrow func(Range, int64) Range) error {
		if at.IsZero() {
			return nil
		}
		found, err := admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), l.Topic)
		if err := cmp.Or(err, found.Error()); err != nil {
			return err
		}
		for p, r := range l.Partitions {
			l.Partitions[p] = narrow(r, found[l.Topic][p].Offset)
		}
		return nil
	}
	return cmp.Or(
		cut(b.From, func(r Range, at int64) Range {
			return Range{min(max(r.Start, at), r.End), r.End}
		}),
		cut(b.To, func(r Range, at int64) Range {
			return Range{r.Start, max(r.Start, min(r.End, at))}
		}),
	)
}

// Newest is the part with the newest n offsets, in proportion from each partition; 0 is all.
func (l Log) Newest(n int64) Log {
	l.Partitions = maps.Clone(l.Partitions)
	l.newest(n)
	return l
}

// newest moves the starts on until n offsets are left. Parts of an offset add up from partition to
// partition: else a topic of many partitions would have none left.
func (l *Log) newest(n int64) {
	all := l.Offsets()
	if n <= 0 || all <= n {
		return
	}
	var passed, kept int64
	for _, p := range slices.Sorted(maps.Keys(l.Partitions)) {
		r := l.Partitions[p]
		passed += r.End - r.Start
		upTo := int64(math.Round(float64(passed) * (float64(n) / float64(all))))
		l.Partitions[p] = Range{max(r.Start, r.End-(upTo-kept)), r.End}
		kept = upTo
	}
}
