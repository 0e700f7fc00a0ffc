package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrRevoked is the cause of a batch's cancelled context: its partitions were taken away, or a
// rebalance waits for the batch. Its records will be delivered again, here or to another member.
var ErrRevoked = errors.New("the group rebalances")

// ErrInputReplaced says that the input topic is not the one whose offsets the session or its group
// holds: it was deleted, or deleted and created anew.
var ErrInputReplaced = errors.New("the input topic was deleted or recreated")

// inputError marks an error about the input. One about an output topic may look the same.
func inputError(err error) error {
	if errors.Is(err, kerr.UnknownTopicID) {
		return fmt.Errorf("%w: %w", ErrInputReplaced, err)
	}
	return err
}

// Record is a polled record with what the fetch knows about it.
type Record struct {
	*kgo.Record
	TopicID [16]byte  // zero on brokers without topic IDs (before 2.8)
	Settled time.Time // a claim by this record that was made up to then was forwarded and committed
	span    int32     // index of its span
}

// Span is the part of one input partition that a batch covers.
type Span struct {
	Partition   int32
	TopicID     [16]byte
	First       int64 // offset of its first record
	Next        int64 // offset to commit: one past its last record or transaction marker
	LeaderEpoch int32 // of its last record
	Again       bool  // begins below the fence: it was handled before
	before      Fence
	claimed     time.Time // of the youngest claim that one of its records owns
}

// Fence is the one to write when the span is done.
func (s Span) Fence() Fence { return s.before.advance(s) }

// Batch is what one poll returned, in the order of partition and offset.
type Batch struct {
	Records []Record
	Spans   []Span
	revoked context.Context
}

// Context returns a context that ends with parent, or with cause ErrRevoked when the work on this
// batch has become useless.
func (b *Batch) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return endingWith(parent, b.revoked)
}

// endingWith returns a context that ends with parent, or with other and its cause.
func endingWith(parent, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Own notes that a record of the batch owns its ID through a claim made at a time.
func (b *Batch) Own(record int, claimed time.Time) {
	span := &b.Spans[b.Records[record].span]
	span.claimed = latest(span.claimed, claimed)
}

// NewBatch flattens what one poll fetched. Sessions make their batches with it, and so do tests that
// stand in for a session. Ascending partitions make runs repeatable.
func NewBatch(fetches kgo.Fetches, fences map[int32]Fence, revoked context.Context) *Batch {
	type part struct {
		topicID [16]byte
		kgo.FetchPartition
	}
	var parts []part
	total := 0
	fetches.EachTopic(func(t kgo.FetchTopic) {
		for _, p := range t.Partitions {
			if len(p.Records) > 0 {
				parts = append(parts, part{t.TopicID, p})
				total += len(p.Records)
			}
		}
	})
	slices.SortStableFunc(parts, func(a, b part) int { return int(a.Partition) - int(b.Partition) })
	batch := &Batch{Records: make([]Record, 0, total), revoked: revoked}
	for _, p := range parts {
		batch.add(p.topicID, p.Records, fences[p.Partition])
	}
	return batch
}

// add begins a span, unless the records go on where the last one ends.
func (b *Batch) add(topicID [16]byte, records []*kgo.Record, fence Fence) {
	first, last := records[0], records[len(records)-1]
	if n := len(b.Spans); n == 0 || !b.Spans[n-1].continuedBy(topicID, first) {
		b.Spans = append(b.Spans, Span{
			Partition: first.Partition, TopicID: topicID, First: first.Offset,
			Again: fence.covers(topicID, first), before: fence,
		})
	}
	span := int32(len(b.Spans) - 1)
	b.Spans[span].Next, b.Spans[span].LeaderEpoch = last.Offset+1, last.LeaderEpoch
	for _, r := range records {
		if r.Attrs.IsControl() {
			continue // it only moves the span on
		}
		b.Records = append(b.Records, Record{Record: r, TopicID: topicID, Settled: fence.settled(topicID, r), span: span})
	}
}

// continuedBy reports whether the record comes behind the span. It does not if the client went back because the
// broker's log was cut.
func (s *Span) continuedBy(topicID [16]byte, r *kgo.Record) bool {
	return s.Partition == r.Partition && s.TopicID == topicID && s.Next <= r.Offset
}
