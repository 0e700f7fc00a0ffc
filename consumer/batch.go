package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
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

// fence is the one to write when the span is done, and all that the one before tells of.
func (s *Span) fence(before fence.Fence) fence.Fence {
	return before.Advance(fence.Span{
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

// Fences are those to write when the batch is done, each with its span. Where the client went back
// in the log, a partition has several: each says what those before it say, too.
func (b *Batch) Fences() iter.Seq2[*Span, fence.Fence] {
	return func(yield func(*Span, fence.Fence) bool) {
		var last fence.Fence
		for i := range b.Spans {
			s := &b.Spans[i]
			if i == 0 || b.Spans[i-1].Partition != s.Partition {
				last = s.before
			}
			if last = s.fence(last); !yield(s, last) {
				return
			}
		}
	}
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
	if s == nil || !s.Of(r.TopicID, r.Offset, r.LeaderEpoch) {
		return fence.Skip{}, false
	}
	return *s, true
}

func (b *Batch) has(at Place) bool {
	for i := range b.Spans {
		s := &b.Spans[i]
		if s.Partition != at.Partition || !fence.SameTopic(s.TopicID, at.TopicID) ||
			at.Offset < s.First || at.Offset >= s.Next {
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

// add begins a span where the records do not go on at the end of the last one: with another
// partition, or because the client went back in the log while the batch was filled. It leaves out
// what the batch has already.
func (b *Batch) add(topicID [16]byte, records []*kgo.Record, before fence.Fence) {
	spans := b.spansOf(records[0].Partition)
	reached := int64(0)
	for i := range spans {
		reached = max(reached, spans[i].Next)
	}
	had := len(spans) > 0 // a transaction marker is, or is not, with the record before it
	for _, r := range records {
		switch {
		case r.Offset >= reached:
			had = false
		case !r.Attrs.IsControl():
			had = b.hasAlready(topicID, r)
		}
		n := len(b.Spans) - 1
		switch {
		case had && r.Offset < b.Spans[n].Next:
			continue
		case !had && (n < 0 || !b.Spans[n].continuedBy(topicID, r)):
			b.begin(topicID, r, before)
			n++
		}
		s := &b.Spans[n]
		if r.Offset > s.Next {
			s.missing = s.missing.Add(max(s.Next, before.Next()), r.Offset)
		}
		s.Next, s.LeaderEpoch = r.Offset+1, r.LeaderEpoch
		if had || r.Attrs.IsControl() {
			continue // it only moves the span on
		}
		settled := before.Settled(topicID, r.Offset, r.LeaderEpoch)
		b.Records = append(b.Records, Record{Record: r, TopicID: topicID, Settled: settled,
			span: int32(n)})
		s.to = len(b.Records)
	}
}

// begin begins a span with a record.
func (b *Batch) begin(topicID [16]byte, first *kgo.Record, before fence.Fence) {
	next := before.Next()
	if len(b.spansOf(first.Partition)) > 0 {
		next = first.Offset // nothing is missing before it: the client went back
	}
	b.Spans = append(b.Spans, Span{
		Partition: first.Partition, TopicID: topicID, First: first.Offset, Next: next,
		Again: before.Covers(topicID, first.Offset, first.LeaderEpoch), before: before,
		group: b.group, from: len(b.Records), to: len(b.Records),
	})
}

// hasAlready reports whether the batch has a record that is fetched again. One without an epoch may
// be another one with the same offset.
func (b *Batch) hasAlready(topicID [16]byte, r *kgo.Record) bool {
	return r.LeaderEpoch >= 0 && b.has(Place{TopicID: topicID, Partition: r.Partition,
		Offset: r.Offset, LeaderEpoch: r.LeaderEpoch})
}

// spansOf are those of the partition that the batch is being filled with.
func (b *Batch) spansOf(partition int32) []Span {
	from := len(b.Spans)
	for from > 0 && b.Spans[from-1].Partition == partition {
		from--
	}
	return b.Spans[from:]
}

// continuedBy reports whether the record comes behind the span. It does not if the client went back
// because the broker's log was cut.
func (s *Span) continuedBy(topicID [16]byte, r *kgo.Record) bool {
	return s.Partition == r.Partition && s.TopicID == topicID && s.Next <= r.Offset
}
