package forwarder

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Parcel is what one batch sends. The records are copies: those that were polled stay as they were,
// and the new ones share their bytes.
type Parcel struct {
	topics  *Topics
	records []kgo.Record
	polled  []*kgo.Record // what the records were made of, one for each

	// Of a Send in which records were refused:
	open   map[*kgo.Record]bool // polled records that are not dealt with
	buried map[*kgo.Record]bool // those that became dead letters
}

// NewParcel begins a parcel for a batch of n records; in enforce mode it never grows.
func (t *Topics) NewParcel(n int) *Parcel {
	return &Parcel{topics: t, records: make([]kgo.Record, 0, n), polled: make([]*kgo.Record, 0, n)}
}

// Len is the number of records to send.
func (p *Parcel) Len() int { return len(p.records) }

// Truncate takes back what was added since Len was n.
func (p *Parcel) Truncate(n int) { p.records, p.polled = p.records[:n], p.polled[:n] }

// Written tells, after a Send that ended with a Stuck, which records were dealt with: all that is
// to be sent for them is acknowledged, by the topic that is told.
func (p *Parcel) Written() map[*kgo.Record]string {
	written := make(map[*kgo.Record]string)
	for i, r := range p.polled {
		switch {
		case p.open[r]:
		case p.buried[r]:
			written[r] = p.topics.DeadLetter
		default:
			written[r] = p.records[i].Topic
		}
	}
	return written
}

// Destination is the topic of the record that was added last.
func (p *Parcel) Destination() string { return p.records[len(p.records)-1].Topic }

// Clean adds the record as it is to the clean topic. It reports false, and adds nothing, if the
// topic does not admit a record of that size.
func (p *Parcel) Clean(r *kgo.Record) bool {
	return p.add(r, copied(p.topics.Output, r, r.Headers))
}

// Marked is Clean with headers that tell the verdict.
func (p *Parcel) Marked(r *kgo.Record, note Note) bool {
	return p.add(r, copied(p.topics.Output, r, slices.Concat(r.Headers, note.headers())))
}

// Duplicate adds the record to the duplicates topic, if there is one. A record that grew over that
// topic's limit goes without: it is only a report.
func (p *Parcel) Duplicate(r *kgo.Record, note Note) {
	if p.topics.Duplicates != "" {
		out := copied(p.topics.Duplicates, r,
			slices.Concat(r.Headers, sourceHeaders(r), note.headers()))
		form{now: !Keeps(r.Timestamp)}.apply(&out, r)
		p.add(r, out)
	}
}

// DeadLetter adds the record to the dead-letter topic; one that is too large for it as a stub. The
// error wraps ErrNoDeadLetterTopic, or is a Stuck.
func (p *Parcel) DeadLetter(r *kgo.Record, reason string) error {
	out, _, err := p.topics.deadLetter(r, reason, form{now: !Keeps(r.Timestamp)})
	if err != nil {
		return err
	}
	p.records, p.polled = append(p.records, out), append(p.polled, r)
	return nil
}

func (p *Parcel) add(polled *kgo.Record, out kgo.Record) bool {
	if !p.topics.admits(&out) {
		return false
	}
	p.records, p.polled = append(p.records, out), append(p.polled, polled)
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
