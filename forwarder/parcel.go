package forwarder

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrNoDeadLetterTopic is wrapped when a record must go to a dead-letter topic and none is set.
var ErrNoDeadLetterTopic = errors.New("no dead_letter_topic is set")

// Parcel is what one batch sends. The records are copies: those that were polled stay as they were,
// and the new ones share their bytes.
type Parcel struct {
	topics  *Topics
	records []kgo.Record
}

// NewParcel begins a parcel for a batch of n records; in enforce mode it never grows.
func (t *Topics) NewParcel(n int) *Parcel {
	return &Parcel{topics: t, records: make([]kgo.Record, 0, n)}
}

// Len is the number of records to send.
func (p *Parcel) Len() int { return len(p.records) }

// Clean adds the record as it is to the clean topic. It reports false, and adds nothing, if the
// topic does not admit a record of that size.
func (p *Parcel) Clean(r *kgo.Record) bool {
	return p.add(p.topics.Output, r, r.Headers)
}

// Marked is Clean with headers that tell the verdict.
func (p *Parcel) Marked(r *kgo.Record, note Note) bool {
	return p.add(p.topics.Output, r, slices.Concat(r.Headers, note.headers()))
}

// Duplicate adds the record to the duplicates topic, if there is one. A record that grew over that
// topic's limit goes without: it is only a report.
func (p *Parcel) Duplicate(r *kgo.Record, note Note) {
	if p.topics.Duplicates != "" {
		p.add(p.topics.Duplicates, r, slices.Concat(r.Headers, sourceHeaders(r), note.headers()))
	}
}

// DeadLetter adds the record to the dead-letter topic.
func (p *Parcel) DeadLetter(r *kgo.Record, reason string) error {
	place := fmt.Sprintf("dead-letter %s[%d]@%d (%s)", r.Topic, r.Partition, r.Offset, reason)
	if p.topics.DeadLetter == "" {
		return fmt.Errorf("%s: %w", place, ErrNoDeadLetterTopic)
	}
	headers := slices.Concat(r.Headers, []kgo.RecordHeader{header(HeaderReason, reason)}, sourceHeaders(r))
	if !p.add(p.topics.DeadLetter, r, headers) {
		return fmt.Errorf("%s: larger than max.message.bytes of %s; raise it", place, p.topics.DeadLetter)
	}
	return nil
}

func (p *Parcel) add(topic string, r *kgo.Record, headers []kgo.RecordHeader) bool {
	out := kgo.Record{
		Topic: topic, Partition: r.Partition,
		Key: r.Key, Value: r.Value, Headers: headers, Timestamp: r.Timestamp,
	}
	if soleBatchSize(&out) > p.topics.limit(topic) {
		return false
	}
	p.records = append(p.records, out)
	return true
}
