package forwarder

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A refusal tells of other records, too: one that a compacted topic refuses for want of a key, or
// for its time, is not alone.

// times are those of the records that a partition of the clean topic took in this Send.
type times struct{ earliest, latest time.Time }

// took notes a record that was written.
func (s *isolator) took(r *kgo.Record) {
	if r.Topic != s.topics.Output {
		return
	}
	known := s.taken[r.Partition]
	if known == nil {
		s.taken[r.Partition] = &times{r.Timestamp, r.Timestamp}
		return
	}
	if r.Timestamp.Before(known.earliest) {
		known.earliest = r.Timestamp
	}
	if r.Timestamp.After(known.latest) {
		known.latest = r.Timestamp
	}
}

// likeness tells which other records of the partition will be refused as this one was, or is nil.
func (s *isolator) likeness(l letter, refusal error) func(*kgo.Record) bool {
	switch ReasonOf(refusal, l.out) {
	case ReasonNullKey:
		if s.topics.Compacted[l.out.Topic] {
			return func(r *kgo.Record) bool { return r.Key == nil }
		}
	case ReasonTimestamp:
		found, border := time.Now(), l.out.Timestamp
		switch s.side(l.out, found) {
		case ahead:
			return func(r *kgo.Record) bool {
				return r.Timestamp.Add(-time.Since(found)).After(border)
			}
		case behind:
			return func(r *kgo.Record) bool { return !r.Timestamp.After(border) }
		}
	}
	return nil
}

type side uint8

const (
	unsure side = iota
	ahead       // of the broker's clock, too far: what is further ahead is refused as well
	behind      // it, too far: what is older is refused as well
)

// wrongClock is how far our clock may be from the broker's: nothing that is nearer is judged by it.
const wrongClock = 30 * time.Minute

// side tells why the partition refused a time. It has taken earlier ones, or later ones; without
// such, our clock must do. What it took a moment ago may be too old by now, by as long as this Send
// has lasted.
func (s *isolator) side(r *kgo.Record, now time.Time) side {
	known := s.taken[r.Partition]
	earlier := known != nil && r.Timestamp.Sub(known.earliest) > now.Sub(s.began)
	later := known != nil && known.latest.After(r.Timestamp)
	switch {
	case earlier && later:
		return unsure // the topic's limits were changed meanwhile
	case earlier:
		return ahead
	case later:
		return behind
	case r.Timestamp.Sub(now) > wrongClock:
		return ahead
	case now.Sub(r.Timestamp) > wrongClock:
		return behind
	}
	return unsure
}
