package pipeline

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// With at_least_once, what is acknowledged of a batch that was given back stays. When the batch
// comes again, the claim that made a record a conflict may have ended: then the record is its own
// first copy, and a dead letter, if it becomes one, must not call it a conflict.
func TestWhatIsWrittenIsSentAgainOnlyWithAnotherWord(t *testing.T) {
	record := &kgo.Record{Topic: "orders", Partition: 3, Offset: 7, Value: make([]byte, 100),
		Timestamp: time.UnixMilli(1)}
	other := dedup.Coordinates{Partition: 1, Offset: 1}
	first := dedup.Judgement{Verdict: dedup.VerdictFirst, ClaimedAt: time.Now()}
	duplicate := dedup.Judgement{Verdict: dedup.VerdictDuplicate, Owner: other}
	conflict := dedup.Judgement{Verdict: dedup.VerdictConflict, Owner: other}
	for _, c := range []struct {
		name    string
		written forwarder.Sent
		now     dedup.Judgement
		most    int // bytes of a record that the clean topic takes
		sent    int
	}{
		{"it is on the clean topic", forwarder.Sent{Topic: "clean"}, first, 1000, 0},
		{"it was a duplicate, and is the first", forwarder.Sent{Topic: "duplicates",
			Word: "duplicate"}, first, 1000, 1},
		{"it is on the duplicates topic", forwarder.Sent{Topic: "duplicates", Word: "duplicate"},
			duplicate, 1000, 0},
		{"it was a duplicate, and is a conflict", forwarder.Sent{Topic: "duplicates",
			Word: "duplicate"}, conflict, 1000, 1},
		{"it is a dead letter", forwarder.Sent{Topic: "dlq", Word: forwarder.ReasonTooLarge}, first,
			50, 0},
		{"it was a conflict, and is too large", forwarder.Sent{Topic: "dlq", Word: "conflict"},
			first, 50, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &lane{
				topics: &forwarder.Topics{Output: "clean", Duplicates: "duplicates",
					DeadLetter: "dlq", MaxBytes: map[string]int{"clean": c.most}},
				metrics: NewCollectors(prometheus.NewRegistry()).For("orders", 0),
				written: map[consumer.Place]forwarder.Sent{{Partition: 3, Offset: 7}: c.written},
			}
			batch := &consumer.Batch{Records: []consumer.Record{{Record: record}},
				Spans: []consumer.Span{{}}}
			p, err := l.plan(batch, []dedup.Judgement{c.now}, nil, noTrace{})
			if err != nil || p.outgoing.Len() != c.sent {
				t.Errorf("%d records are sent, %v; want %d", p.outgoing.Len(), err, c.sent)
			}
		})
	}
}
