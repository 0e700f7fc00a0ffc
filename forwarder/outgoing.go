package forwarder

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Outgoing is what one batch sends. The records are copies: those that were polled stay as they
// were, and the new ones share their bytes.
type Outgoing struct {
	topics  *Topics
	records []kgo.Record
	polled  []*kgo.Record // what the records were made of, one for each

	// Of a Send in which records were refused:
	open   map[*kgo.Record]bool   // polled records that are not dealt with
	buried map[*kgo.Record]string // why those became dead letters that did
}

// NewOutgoing begins with nothing, for a batch of n records; in enforce mode it never grows.
func (t *Topics) NewOutgoing(n int) *Outgoing {
	return &Outgoing{topics: t, records: make([]kgo.Record, 0, n),
		polled: make([]*kgo.Record, 0, n)}
}

// Len is the number of records to send.
func (o *Outgoing) Len() int { return len(o.records) }

// Truncate takes back what was added since Len was n.
func (o *Outgoing) Truncate(n int) { o.records, o.polled = o.records[:n], o.polled[:n] }

// Sent is what becomes of a record: the topic that takes it, and what kdedup says about it there,
// which is why it is a dead letter, or its verdict. On the clean topic kdedup says nothing, unless
// it marks records.
type Sent struct{ Topic, Word string }

// Written tells, after a Send that ended with a Stuck, which records were dealt with: all that is
// to be sent for them is acknowledged.
func (o *Outgoing) Written() map[*kgo.Record]Sent {
	written := make(map[*kgo.Record]Sent)
	for i, r := range o.polled {
		if o.open[r] {
			continue
		}
		if reason, is := o.buried[r]; is {
			written[r] = Sent{o.topics.DeadLetter, reason}
			continue
		}
		written[r] = o.sent(i)
	}
	return written
}

// Last is what becomes of the record that was added last.
func (o *Outgoing) Last() Sent { return o.sent(len(o.records) - 1) }

func (o *Outgoing) sent(i int) Sent {
	out, own := &o.records[i], len(o.polled[i].Headers)
	s := Sent{Topic: out.Topic}
	switch {
	case out.Topic == o.topics.DeadLetter:
		s.Word, _ = describe(out)
	case len(out.Headers) > own:
		for _, h := range out.Headers[own:] {
			if h.Key == HeaderVerdict {
				s.Word = string(h.Value)
			}
		}
	}
	return s
}

// Clean adds the record as it is to the clean topic. It reports false, and adds nothing, if the
// topic does not admit a record of that size.
func (o *Outgoing) Clean(r *kgo.Record) bool {
	return o.add(r, copied(o.topics.Output, r, r.Headers))
}

// Marked is Clean with headers that tell the verdict.
func (o *Outgoing) Marked(r *kgo.Record, note Note) bool {
	return o.add(r, copied(o.topics.Output, r, slices.Concat(r.Headers, note.headers())))
}

// Duplicate adds the record to the duplicates topic, if there is one. A record that grew over that
// topic's limit goes without: it is only a report.
func (o *Outgoing) Duplicate(r *kgo.Record, note Note) {
	if o.topics.Duplicates != "" {
		out := copied(o.topics.Duplicates, r,
			slices.Concat(r.Headers, sourceHeaders(r), note.headers()))
		form{now: !Keeps(r.Timestamp)}.apply(&out, r)
		o.add(r, out)
	}
}

// DeadLetter adds the record to the dead-letter topic, with the owner of its ID if the note has it;
// one that is too large for the topic as a stub. The error wraps ErrNoDeadLetterTopic, or is a
// Stuck.
func (o *Outgoing) DeadLetter(r *kgo.Record, reason string, about Note) error {
	out, _, err := o.topics.deadLetter(r, reason, about, form{now: !Keeps(r.Timestamp)})
	if err != nil {
		return err
	}
	o.records, o.polled = append(o.records, out), append(o.polled, r)
	return nil
}

func (o *Outgoing) add(polled *kgo.Record, out kgo.Record) bool {
	if !o.topics.admits(&out) {
		return false
	}
	o.records, o.polled = append(o.records, out), append(o.polled, polled)
	return true
}

func copied(topic string, r *kgo.Record, headers []kgo.RecordHeader) kgo.Record {
	return kgo.Record{
		Topic: topic, Partition: r.Partition,
		Key: r.Key, Value: r.Value, Headers: headers, Timestamp: r.Timestamp,
	}
}

// admits reports whether the record's topic takes one of its size.
func (t *Topics) admits(r *kgo.Record) bool { return soleBatchSize(r) <= t.limit(r.Topic) }
