package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// ErrRevoked is the cause of a batch's cancelled context: its partitions were taken away, or a
// rebalance waits for the batch. Its records will be delivered again, here or to another member.
var ErrRevoked = errors.New("the group rebalances")

// ErrInputReplaced says that the input topic is not the one whose offsets the session or its group
// holds: it was deleted, or deleted and created again.
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
	from, to    int   // indexes of its records
	before      fence.Fence
	group       string        // that handles it
	missing     fence.Missing // offsets above the fence that were not delivered
	until       time.Time     // when claims of what is missing have ended
	inherited   []int64       // offsets of missing records for which a copy stands
	skip        *fence.Skip   // of one of its records, if there is one
	claimed     time.Time     // of the youngest claim that one of its records owns
}

// Fence is the one to write when the span is done.
func (s *Span) Fence() fence.Fence {
	return s.before.Advance(fence.Span{
		TopicID: s.TopicID, Next: s.Next, LeaderEpoch: s.LeaderEpoch, Claimed: s.claimed,
		Group:   s.group,
		Missing: s.missing, Until: s.until, Inherited: s.inherited, Now: time.Now(),
	})
}

// Batch is what one poll returned, in the order of partition and offset.
type Batch struct {
	Records []Record
	Spans   []Span
	group   string // that handles it
	amount  amount
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
	if other.Err() != nil { // AfterFunc would say so from a goroutine, when work may have begun
		cancel(context.Cause(other))
	}
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Own notes that a record of the batch owns its ID through a claim made at a time.
func (b *Batch) Own(record int, claimed time.Time) {
	span := &b.Spans[b.Records[record].span]
	span.claimed = fence.Latest(span.claimed, claimed)
}

// topicID is that of the input, as far as a fetch has told it.
func (b *Batch) topicID() (id [16]byte) {
	for i := range b.Spans {
		if id = b.Spans[i].TopicID; id != [16]byte{} {
			break
		}
	}
	return id
}

// offsets are those to commit. A partition of which the batch has two spans ends with the second.
func (b *Batch) offsets() Offsets {
	offsets := make(Offsets, len(b.Spans))
	for i := range b.Spans {
		s := &b.Spans[i] // not a copy: the lane notes its claims in other fields meanwhile
		offsets[s.Partition] = kgo.EpochOffset{Epoch: s.LeaderEpoch, Offset: s.Next}
	}
	return offsets
}

// Place is where a record stands in the input. It is the same on every delivery.
type Place struct {
	TopicID     [16]byte
	Partition   int32
	Offset      int64
	LeaderEpoch int32
}

// Gone reports whether a record that owns the ID of another one is missing from the input, and was
// not forwarded: it should have been delivered before the other one, and was not. Compaction
// removes the claimed original when a copy has its key, retention and an operator remove the
// beginning of the log, an unclean leader election cuts its end. Nobody but the copy is left to be
// forwarded. The claim of the owner was made at a time.
//
// Of owners on other partitions nothing is known here.
func (b *Batch) Gone(record int, owner Place, claimed time.Time) bool {
	r := &b.Records[record]
	span := &b.Spans[r.span]
	if owner.Partition != r.Partition || !fence.SameTopic(owner.TopicID, r.TopicID) {
		return false
	}
	// Behind a record, no epoch is lower than its own: what was there when the log was cut is
	// overwritten.
	if owner.Offset >= r.Offset && owner.LeaderEpoch >= r.LeaderEpoch {
		return false
	}
	handled := span.before.Covers(owner.TopicID, owner.Offset, owner.LeaderEpoch)
	if handled && span.Again {
		// It may have been dropped as a copy then, and have claimed its ID since.
		handled = !claimed.After(span.before.Settled(owner.TopicID, owner.Offset,
			owner.LeaderEpoch))
	}
	return !handled && !b.has(owner)
}

// Inherit notes that a record of the batch stands for the owner of its ID, which is gone.
func (b *Batch) Inherit(record int, owner Place) {
	span := &b.Spans[b.Records[record].span]
	span.inherited = append(span.inherited, owner.Offset)
}

// Skipped tells whether an operator wants a record out of the way, and how.
func (b *Batch) Skipped(record int) (skip fence.Skip, skipped bool) {
	r := &b.Records[record]
	s := b.Spans[r.span].skip
	if s == nil || s.Offset != r.Offset || !fence.SameTopic(s.TopicID, r.TopicID) {
		return fence.Skip{}, false
	}
	return *s, true
}

func (b *Batch) has(at Place) bool {
	for i := range b.Spans {
		s := &b.Spans[i]
		if s.Partition != at.Partition || at.Offset < s.First || at.Offset >= s.Next {
			continue
		}
		records := b.Records[s.from:s.to]
		n, found := slices.BinarySearchFunc(records, at.Offset, func(r Record, offset int64) int {
			return cmp.Compare(r.Offset, offset)
		})
		if found && records[n].LeaderEpoch == at.LeaderEpoch {
			return true
		}
	}
	return false
}

// NewBatch flattens what one poll fetched; fenceOf tells the fence of a partition. Sessions make
// their batches with it, and so do tests that stand in for a session. Ascending partitions make
// runs repeatable.
func NewBatch(
	fetches kgo.Fetches, fenceOf func(partition int32) fence.Fence, group string,
	revoked context.Context,
) *Batch {
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
	batch := &Batch{Records: make([]Record, 0, total), group: group, revoked: revoked}
	for _, p := range parts {
		batch.add(p.topicID, p.Records, fenceOf(p.Partition))
	}
	return batch
}

// add begins a span, unless the records go on where the last one ends.
func (b *Batch) add(topicID [16]byte, records []*kgo.Record, before fence.Fence) {
	if records = b.notYet(records); len(records) == 0 {
		return
	}
	first := records[0]
	n := len(b.Spans)
	if n == 0 || !b.Spans[n-1].continuedBy(topicID, first) {
		at := before.Next()
		if n > 0 && b.Spans[n-1].Partition == first.Partition {
			at = first.Offset // the log was cut
		}
		b.Spans = append(b.Spans, Span{
			Partition: first.Partition, TopicID: topicID, First: first.Offset, Next: at,
			Again: before.Covers(topicID, first.Offset, first.LeaderEpoch), before: before,
			group: b.group, from: len(b.Records),
		})
	}
	span := int32(len(b.Spans) - 1)
	s := &b.Spans[span]
	for _, r := range records {
		if r.Offset > s.Next {
			s.missing = s.missing.Add(max(s.Next, before.Next()), r.Offset)
		}
		s.Next, s.LeaderEpoch = r.Offset+1, r.LeaderEpoch
		if r.Attrs.IsControl() {
			continue // it only moves the span on
		}
		settled := before.Settled(topicID, r.Offset, r.LeaderEpoch)
		b.Records = append(b.Records, Record{Record: r, TopicID: topicID, Settled: settled,
			span: span})
	}
	s.to = len(b.Records)
}

// notYet leaves out the records that the batch has already: the client went back in the log while
// the batch was filled. A record without an epoch may be another one with the same offset.
func (b *Batch) notYet(records []*kgo.Record) []*kgo.Record {
	if len(b.Spans) == 0 {
		return records
	}
	last := &b.Spans[len(b.Spans)-1]
	for len(records) > 0 {
		r := records[0]
		if r.Partition != last.Partition || r.Offset >= last.Next || r.LeaderEpoch < 0 {
			break
		}
		if !r.Attrs.IsControl() && !b.has(Place{Partition: r.Partition, Offset: r.Offset,
			LeaderEpoch: r.LeaderEpoch}) {
			break
		}
		records = records[1:]
	}
	return records
}

// continuedBy reports whether the record comes behind the span. It does not if the client went back
// because the broker's log was cut.
func (s *Span) continuedBy(topicID [16]byte, r *kgo.Record) bool {
	return s.Partition == r.Partition && s.TopicID == topicID && s.Next <= r.Offset
}
