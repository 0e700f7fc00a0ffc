package forwarder

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func record() *kgo.Record {
	return &kgo.Record{
		Topic: "in", Partition: 3, Offset: 42, Timestamp: time.UnixMilli(1_700_000_000_123),
		Key: []byte("k"), Value: []byte("v"),
		Headers: []kgo.RecordHeader{{Key: "id", Value: []byte("7")}},
	}
}

func headerMap(r *kgo.Record) map[string]string {
	m := make(map[string]string)
	for _, h := range r.Headers {
		m[h.Key] = string(h.Value)
	}
	return m
}

func TestParcelRecords(t *testing.T) {
	note := Note{Verdict: "duplicate", Owned: true, ClaimedAt: time.UnixMilli(1_700_000_000_000)}
	note.Owner.TopicID[0], note.Owner.Partition, note.Owner.Offset = 0xab, 1, 9
	source := map[string]string{
		HeaderSourceTopic: "in", HeaderSourcePartition: "3", HeaderSourceOffset: "42",
		HeaderSourceTime: "2023-11-14T22:13:20.123Z",
	}
	owner := map[string]string{
		HeaderVerdict: "duplicate", HeaderOwnerTopicID: "ab000000000000000000000000000000",
		HeaderOwnerPartition: "1", HeaderOwnerOffset: "9",
		HeaderClaimedAt: "2023-11-14T22:13:20.000Z",
	}
	cases := []struct {
		name, topic string
		add         func(p *Outgoing, r *kgo.Record) bool
		headers     []map[string]string
	}{
		{"clean: nothing is added", "out", func(p *Outgoing, r *kgo.Record) bool {
			return p.Clean(r)
		}, nil},
		{"marked", "out", func(p *Outgoing, r *kgo.Record) bool { return p.Marked(r, note) },
			[]map[string]string{owner}},
		{"marked without an owner", "out", func(p *Outgoing, r *kgo.Record) bool {
			return p.Marked(r, Note{Verdict: "missing"})
		}, []map[string]string{{HeaderVerdict: "missing"}}},
		{"duplicate", "dup", func(p *Outgoing, r *kgo.Record) bool {
			p.Duplicate(r, note)
			return true
		}, []map[string]string{source, owner}},
		{"dead letter", "dead", func(p *Outgoing, r *kgo.Record) bool {
			return p.DeadLetter(r, "why", Note{}) == nil
		}, []map[string]string{source, {HeaderReason: "why"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			topics := Topics{Output: "out", Duplicates: "dup", DeadLetter: "dead"}
			p, in := topics.NewOutgoing(1), record()
			if !c.add(p, in) || p.Len() != 1 {
				t.Fatalf("not added: %d records", p.Len())
			}
			out := &p.records[0]
			want := map[string]string{"id": "7"}
			for _, headers := range c.headers {
				for k, v := range headers {
					want[k] = v
				}
			}
			if diff := cmp.Diff(want, headerMap(out)); diff != "" {
				t.Errorf("headers: %s", diff)
			}
			if out.Topic != c.topic || out.Partition != 3 || string(out.Key) != "k" ||
				string(out.Value) != "v" || !out.Timestamp.Equal(in.Timestamp) {
				t.Errorf("got %+v", out)
			}
			if diff := cmp.Diff(map[string]string{"id": "7"}, headerMap(in)); diff != "" {
				t.Errorf("the polled record changed: %s", diff)
			}
		})
	}
}

func TestParcelLimits(t *testing.T) {
	big := record()
	big.Value = []byte(strings.Repeat("x", 500))
	topics := Topics{Output: "out", Duplicates: "dup", DeadLetter: "dead",
		MaxBytes: map[string]int{"out": 400, "dup": 400, "dead": 400}}
	p := topics.NewOutgoing(0)
	if p.Clean(big) {
		t.Error("a record over the limit was added to the clean topic")
	}
	if p.Duplicate(big, Note{}); p.Len() != 0 {
		t.Error("a record over the limit was added to the duplicates topic")
	}
	if err := p.DeadLetter(big, "why", Note{}); err != nil || p.Len() != 1 {
		t.Errorf("a stub of a record over the limit was not added to the dead-letter topic: %v",
			err)
	}
	tiny := (&Topics{DeadLetter: "dead", MaxBytes: map[string]int{"dead": 100}}).NewOutgoing(0)
	if err := tiny.DeadLetter(big, "why", Note{}); err == nil ||
		err.Error() != "dead-letter in[3]@42 (why): even without its value larger than "+
			"max.message.bytes of dead; raise it" {
		t.Errorf("got %v", err)
	}
	none := (&Topics{Output: "out"}).NewOutgoing(0)
	if err := none.DeadLetter(big, "why", Note{}); !errors.Is(err, ErrNoDeadLetterTopic) {
		t.Errorf("got %v", err)
	}
	if none.Duplicate(big, Note{}); none.Len() != 0 {
		t.Error("a duplicate was kept without a duplicates topic")
	}
}

// The size must be exact: one byte more and the broker refuses the batch.
func TestSoleBatchSizeIsWhatTheClientSends(t *testing.T) {
	records := []*kgo.Record{
		{},
		{Key: []byte{}, Value: []byte{}},
		record(),
		{Value: make([]byte, 63)}, {Value: make([]byte, 64)}, {Value: make([]byte, 8191)},
		{Value: make([]byte, 8192)}, {Value: make([]byte, 1<<20)},
		{Headers: []kgo.RecordHeader{{Key: strings.Repeat("k", 64), Value: make([]byte, 8192)}, {},
			{Key: "x"}}},
	}
	for i, r := range records {
		if got, want := soleBatchSize(r), sentSize(t, r); got != want {
			t.Errorf("record %d: got %d, want %d", i, got, want)
		}
	}
}

// answers is a producer that answers as it is told.
type answers struct {
	errs  []error
	flush error
	sent  []*kgo.Record
}

func (a *answers) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	a.sent = append(a.sent, r)
	promise(r, a.errs[len(a.sent)-1])
}

func (a *answers) Flush(context.Context) error { return a.flush }

func TestSendChecksEveryAcknowledgement(t *testing.T) {
	broken, closed := errors.New("broken"), errors.New("closed")
	cases := []struct {
		name string
		to   answers
		want string
	}{
		{"all acknowledged", answers{errs: []error{nil, nil}}, ""},
		{"the last fails", answers{errs: []error{nil, broken}},
			"forward 2 records: to out[3]: broken"},
		{"the first failure is kept", answers{errs: []error{broken, closed}},
			"forward 2 records: to out[3]: broken"},
		{"not flushed", answers{errs: []error{nil, nil}, flush: closed},
			"forward 2 records: flush: closed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := (&Topics{Output: "out"}).NewOutgoing(2)
			p.Clean(record())
			p.Clean(record())
			got := ""
			if err := p.Send(t.Context(), &c.to, Isolation{}); err != nil {
				got = err.Error()
			}
			if got != c.want || len(c.to.sent) != 2 {
				t.Errorf("got %q after %d records, want %q after 2", got, len(c.to.sent), c.want)
			}
			if sent := c.want == ""; sent != (p.Len() == 0) {
				t.Errorf("%d records are left, sent: %v", p.Len(), sent)
			}
		})
	}
}

func TestPartitioners(t *testing.T) {
	keyed := func(key string, partition int32) *kgo.Record {
		return &kgo.Record{Key: []byte(key), Partition: partition}
	}
	cases := []struct {
		name   string
		topics Topics
		topic  string
		record *kgo.Record
		n      int
		want   int
	}{
		{"preserve keeps the number", Topics{Output: "out"}, "out", keyed("a", 5), 8, 5},
		{"the duplicates topic wraps", Topics{Output: "out", Duplicates: "dup"}, "dup",
			keyed("a", 5), 4, 1},
		{"the dead-letter topic wraps", Topics{Output: "out", DeadLetter: "dead"}, "dead",
			keyed("a", 5), 1, 0},
		{"by_key hashes as the Java client does (its murmur2 of foobar is -790332482)",
			Topics{Output: "out", ByKey: true}, "out", keyed("foobar", 5), 8, 6},
		{"by_key leaves the fence alone", Topics{Output: "out", ByKey: true}, "fence",
			keyed("foo", 5), 8, 5},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.topics.partitioner().ForTopic(c.topic).Partition(
				c.record, c.n,
			); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// A producer that writes microseconds for milliseconds is in the year 57868.
func TestATimestampThatTheClientCannotSendIsToldInAHeader(t *testing.T) {
	late := time.UnixMilli(1_764_000_000_000_000)
	for at, want := range map[time.Time]bool{
		late: false, time.UnixMilli(0): true, time.UnixMilli(-1): true,
		time.UnixMilli(1_764_000_000_123):           true,
		time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC): true,
		time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC): false,
	} {
		if got := Keeps(at); got != want {
			t.Errorf("%v: %v", at, got)
		}
	}
	topics := &Topics{Output: "out", DeadLetter: "dlq", Duplicates: "dup"}
	outgoing := topics.NewOutgoing(1)
	polled := &kgo.Record{Topic: "in", Value: []byte("v"), Timestamp: late}
	if err := outgoing.DeadLetter(polled, ReasonTimestamp, Note{}); err != nil {
		t.Fatal(err)
	}
	outgoing.Duplicate(polled, Note{Verdict: "duplicate"})
	for i := range outgoing.records {
		r := &outgoing.records[i]
		if at := headerMap(r)[HeaderSourceTime]; time.Since(r.Timestamp) > time.Minute ||
			at != "57868-12-07T16:00:00.000Z" {
			t.Errorf("%s: at %v, from %s", r.Topic, r.Timestamp, at)
		}
	}
}
