package redrive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// letter is a record of the topic that is read.
type letter struct {
	forwarder.Letter
	topic   string
	place   dedup.Coordinates // of the letter
	id      dedup.ID
	missing dedup.MissingReason
	mark    mark

	out     *kgo.Record // what is sent
	content mark        // of a conflict, to be sent once; zero: it is none
	release bool        // the claim that its record has left behind
}

func (r *run) open(record *kgo.Record) (*letter, error) {
	opened, err := forwarder.Open(record)
	if err != nil {
		return nil, err
	}
	l := &letter{Letter: opened, topic: record.Topic,
		place: dedup.CoordinatesOf(r.Letters.TopicID, record)}
	l.mark = markOf(l.Record)
	return l, nil
}

// identify finds the ID of a letter's record, for which it may have to ask a schema registry.
func (r *run) identify(ctx context.Context, l *letter) (err error) {
	if l.id, l.missing, err = dedup.ExtractNow(ctx, r.Extractor, l.Record); err != nil {
		return fmt.Errorf("find the message ID of the record in %s: %w", l, err)
	}
	return nil
}

// why is the reason of a dead letter, or the verdict about a duplicate.
func (l *letter) why() string { return whyOf(l.Letter) }

func whyOf(l forwarder.Letter) string { return cmp.Or(l.Reason, l.Verdict) }

func (l *letter) String() string { return placeOf(l.topic, l.place.Partition, l.place.Offset) }

func placeOf(topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s[%d]@%d", topic, partition, offset)
}

// undeliverable reports whether the record became a dead letter after it had claimed its ID.
func (l *letter) undeliverable() bool {
	return l.Reason == forwarder.ReasonSkipped || slices.Contains(forwarder.Reasons(), l.Reason)
}

// mark names a record, or the content of an ID.
type mark [16]byte

// markOf names a record of the input by its place, time and content. The place alone would not do:
// an input that was deleted and made again uses it again.
func markOf(r *kgo.Record) mark {
	return hashOf([]byte("record"), []byte(r.Topic),
		binary.BigEndian.AppendUint32(nil, uint32(r.Partition)),
		binary.BigEndian.AppendUint64(nil, uint64(r.Offset)),
		binary.BigEndian.AppendUint64(nil, uint64(r.Timestamp.UnixMilli())), r.Key, r.Value)
}

func contentMark(scope dedup.Scope, id dedup.ID, f dedup.Fingerprint) mark {
	return hashOf([]byte("content"), []byte(scope.ConsumerGroup), []byte(scope.Name), []byte(id),
		f[:])
}

// hashOf keeps apart what stands in different fields, and null from what is empty.
func hashOf(fields ...[]byte) (m mark) {
	h := sha256.New()
	for _, field := range fields {
		length := int64(len(field))
		if field == nil {
			length = -1
		}
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(length)))
		h.Write(field)
	}
	copy(m[:], h.Sum(nil))
	return m
}

// prepare makes what is sent, or tells why the letter cannot be.
func (r *run) prepare(l *letter, now time.Time) (refusal string) {
	source := *l.Record
	l.out = &source
	if r.Into == Input {
		l.out = l.Redriven()
	}
	if r.Now {
		l.out.Timestamp = now.Truncate(time.Millisecond) // as Kafka keeps it
	}
	switch {
	case l.Stub:
		return ValueMissing
	case r.Into == Input && l.Redrives >= r.MaxRedrives:
		return TooOften
	case !r.Target.ByKey && int(l.Record.Partition) >= r.Target.Partitions:
		return NoPartition
	case !forwarder.Keeps(l.out.Timestamp):
		return forwarder.ReasonTimestamp
	case r.Target.Retention > 0 && l.out.Timestamp.Before(now.Add(-r.Target.Retention)):
		return TooOld
	case r.Target.Compacted[r.Target.Output] && l.out.Key == nil:
		return forwarder.ReasonNullKey
	case !r.Target.NewOutgoing(1).Clean(l.out):
		return forwarder.ReasonTooLarge
	case l.Verdict == dedup.VerdictDuplicate.String() && !l.ClaimedAt.After(now.Add(-r.Scope.TTL)):
		return ClaimEnded
	}
	return ""
}
