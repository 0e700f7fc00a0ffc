package forwarder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrNoDeadLetterTopic is wrapped when a record must go to a dead-letter topic and none is set.
var ErrNoDeadLetterTopic = errors.New("no dead_letter_topic is set")

// Stuck says that no topic takes a record in any form.
type Stuck struct {
	Record *kgo.Record // as it was polled
	Reason string      // why it should have been a dead letter
	Err    error       // what the dead-letter topic says
}

func (s *Stuck) Error() string {
	return fmt.Sprintf("dead-letter %s[%d]@%d (%s): %v", s.Record.Topic, s.Record.Partition,
		s.Record.Offset, s.Reason, s.Err)
}

// Why is the error without the place.
func (s *Stuck) Why() string { return fmt.Sprintf("%s: %v", s.Reason, s.Err) }

func (s *Stuck) Unwrap() error { return s.Err }

// form is how a record goes to the dead-letter or the duplicates topic, which may refuse what the
// input took. The zero value is the record with headers that say why it is there.
type form struct {
	stub bool // headers only, and the key if it is short: the record is too large for the topic
	now  bool // with the present time: the topic refuses the record's own
	key  bool // with a made key: a compacted topic refuses records without one
}

// Keeps reports whether the client sends a timestamp as it is. It counts nanoseconds, which end in
// the year 2262; later ones would come out as others. Producers that write microseconds for
// milliseconds make such.
func Keeps(at time.Time) bool { return time.UnixMilli(at.UnixNano() / 1e6).Equal(at) }

// after is the form to try when the topic has refused this one. It reports false if there is none.
func (f form) after(refusal error, refused *kgo.Record) (form, bool) {
	next := f
	switch ReasonOf(refusal, refused) {
	case ReasonTimestamp:
		next.now = true
	case ReasonNullKey:
		next.key = true
	default:
		next.stub = true
	}
	return next, next != f
}

// deadLetter makes the dead letter of a record in a form that the topic's limit admits.
func (t *Topics) deadLetter(
	r *kgo.Record, reason string, about Note, f form,
) (kgo.Record, form, error) {
	if t.DeadLetter == "" {
		return kgo.Record{}, f, &Stuck{r, reason, ErrNoDeadLetterTopic}
	}
	why := []kgo.RecordHeader{header(HeaderReason, reason)}
	for owner := about.owner(); !f.stub; owner = nil { // the value is worth more
		out := copied(t.DeadLetter, r, slices.Concat(r.Headers, why, sourceHeaders(r), owner))
		f.apply(&out, r)
		if t.admits(&out) {
			return out, f, nil
		}
		f.stub = owner == nil
	}
	out := copied(t.DeadLetter, r, slices.Concat(why, sourceHeaders(r), about.owner(),
		contentHeaders(r)))
	out.Value = nil
	f.key = f.key || len(r.Key) > longestStubKey
	f.apply(&out, r)
	if !t.admits(&out) {
		err := fmt.Errorf("even without its value larger than max.message.bytes of %s; raise it",
			t.DeadLetter)
		return kgo.Record{}, f, &Stuck{r, reason, err}
	}
	return out, f, nil
}

// longestStubKey is the length of keys that a stub keeps.
const longestStubKey = 1024

// apply gives the record the time and the key that the form asks for.
func (f form) apply(out, polled *kgo.Record) {
	if f.now {
		out.Timestamp = time.Now()
	}
	if f.key {
		out.Key = made(polled)
		out.Headers = append(out.Headers, header(HeaderKey, "made"))
	}
}

// made is a key that no other record has, so that compaction keeps what has it.
func made(r *kgo.Record) []byte {
	return fmt.Appendf(nil, "%s-%d@%d", r.Topic, r.Partition, r.Offset)
}

// contentHeaders tell of the value that a stub lacks.
func contentHeaders(r *kgo.Record) []kgo.RecordHeader {
	sum := sha256.Sum256(r.Value)
	return []kgo.RecordHeader{
		header(HeaderSourceSize, strconv.Itoa(len(r.Value))),
		header(HeaderSourceSHA256, hex.EncodeToString(sum[:])),
	}
}

// Why a topic does not take a record, in headers and metrics.
const (
	ReasonTooLarge  = "record_too_large"
	ReasonTimestamp = "invalid_timestamp"
	ReasonNullKey   = "null_key"
	ReasonInvalid   = "invalid_record"
)

// ReasonSkipped is that of a record that no topic was asked about: an operator wants it out of the
// way.
const ReasonSkipped = "skipped"

// Reasons lists those of topics.
func Reasons() []string {
	return []string{ReasonTooLarge, ReasonTimestamp, ReasonNullKey, ReasonInvalid}
}

// refusals are the answers with which a broker refuses a batch for what is in it. It has written
// nothing of that batch. CORRUPT_MESSAGE is what brokers before 2.4 say of a null key on a
// compacted topic.
var refusals = []struct {
	err    error
	reason string
}{
	{kerr.MessageTooLarge, ReasonTooLarge},
	{kerr.RecordListTooLarge, ReasonTooLarge},
	{kerr.InvalidTimestamp, ReasonTimestamp},
	{kerr.InvalidRecord, ReasonInvalid},
	{kerr.CorruptMessage, ReasonInvalid},
}

// ReasonOf tells why a topic refused a record, or is empty if the error is about something else.
func ReasonOf(err error, r *kgo.Record) string {
	for _, refusal := range refusals {
		switch {
		case !errors.Is(err, refusal.err):
		case refusal.reason == ReasonInvalid && r.Key == nil:
			return ReasonNullKey
		default:
			return refusal.reason
		}
	}
	return ""
}

// isRefusal reports whether a produce error is about what is in the batch.
func isRefusal(err error) bool { return ReasonOf(err, &kgo.Record{}) != "" }
