package forwarder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// broker takes batches as a real one does, from a client that works as the real one: what is handed
// over is sent by Flush, partition by partition and in batches; a batch with a record that the
// topic refuses is refused as a whole, and all that is behind it on its partition fails with it.
type broker struct {
	refuses    map[string]func(*kgo.Record) error // by topic
	batch      int                                // most records of one
	partitions map[string]int                     // of the topics; 0: as many as there are
	logs       map[string][]*kgo.Record           // by topic and partition
	buffer     []handed
	flushes    int
	produced   int
}

type handed struct {
	record  *kgo.Record
	promise func(*kgo.Record, error)
}

func (b *broker) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	b.produced++
	b.buffer = append(b.buffer, handed{r, promise})
}

func (b *broker) Flush(ctx context.Context) error {
	b.flushes++
	var order []string
	byPlace := make(map[string][]handed)
	for _, h := range b.buffer {
		if n := b.partitions[h.record.Topic]; n > 0 {
			h.record.Partition %= int32(n)
		}
		at := place(h.record)
		if byPlace[at] == nil {
			order = append(order, at)
		}
		byPlace[at] = append(byPlace[at], h)
	}
	b.buffer = nil
	for _, at := range order {
		b.send(at, byPlace[at])
	}
	return ctx.Err()
}

func place(r *kgo.Record) string { return fmt.Sprintf("%s[%d]", r.Topic, r.Partition) }

func (b *broker) send(at string, all []handed) {
	var failed error
	for batch := range slices.Chunk(all, b.batch) {
		for _, h := range batch {
			if rule := b.refuses[h.record.Topic]; failed == nil && rule != nil {
				failed = rule(h.record)
			}
		}
		for _, h := range batch {
			if failed == nil {
				b.logs[at] = append(b.logs[at], h.record)
			}
			h.promise(h.record, failed)
		}
	}
}

func newBroker() *broker {
	return &broker{
		refuses: make(map[string]func(*kgo.Record) error), batch: 1000,
		logs:       make(map[string][]*kgo.Record),
		partitions: map[string]int{"dead": 2, "dup": 2},
	}
}

// texts are the values of a log.
func (b *broker) texts(at string) []string {
	all := []string{}
	for _, r := range b.logs[at] {
		all = append(all, string(r.Value))
	}
	return all
}

func numbered(partition, number int) *kgo.Record {
	return &kgo.Record{
		Topic: "in", Partition: int32(partition), Offset: int64(number),
		Timestamp: time.UnixMilli(1_700_000_000_000 + int64(number)),
		Key:       []byte("k"), Value: []byte(strconv.Itoa(number)),
	}
}

// buried collects what Refused is asked about and sends it to the dead-letter topic.
func buried(refused *[]string) Isolation {
	return Isolation{Refused: func(r Refusal) (bool, error) {
		*refused = append(*refused, string(r.Record.Value)+" "+r.Reason)
		return true, nil
	}}
}

// Whatever records a topic refuses, and however they lie: the others are written once, in order,
// and these are dead letters.
func TestRefusedRecordsAreFoundAndTheOthersKeepTheirOrder(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		b := newBroker()
		b.batch = 1 + random.IntN(100)
		n, partitions, share := 1+random.IntN(400), 1+random.IntN(5), random.IntN(4)
		bad := make(map[string]bool)
		topics := &Topics{Output: "out", DeadLetter: "dead", ByKey: random.IntN(4) == 0}
		b.refuses["out"] = func(r *kgo.Record) error {
			if bad[string(r.Value)] {
				return kerr.InvalidRecord
			}
			return nil
		}
		b.refuses["dead"] = func(r *kgo.Record) error { // some in every form but the last
			if bad[string(r.Value)] && r.Offset%3 == 0 {
				return kerr.InvalidRecord
			}
			return nil
		}
		p := topics.NewOutgoing(n)
		want, wantRefused := make(map[string][]string), []string{}
		for i := range n {
			r := numbered(random.IntN(partitions), i)
			text := string(r.Value)
			if bad[text] = random.IntN(1<<(3*share)) == 0; bad[text] {
				wantRefused = append(wantRefused, text+" invalid_record")
			} else {
				at := fmt.Sprintf("out[%d]", r.Partition)
				want[at] = append(want[at], text)
			}
			p.Clean(r)
		}
		refused := []string{}
		if err := p.Send(t.Context(), b, buried(&refused)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for at, texts := range want {
			if diff := cmp.Diff(texts, b.texts(at)); diff != "" {
				t.Fatalf("seed %d: %s: %s", seed, at, diff)
			}
		}
		slices.Sort(refused)
		slices.Sort(wantRefused)
		if diff := cmp.Diff(wantRefused, refused); diff != "" {
			t.Fatalf("seed %d: refused: %s", seed, diff)
		}
		if dead := len(b.logs["dead[0]"]) + len(b.logs["dead[1]"]); dead != len(wantRefused) {
			t.Fatalf("seed %d: %d dead letters for %d refused records", seed, dead,
				len(wantRefused))
		}
	}
}

// One refused record among many costs a few round trips, and about as many records again as its
// partition has.
func TestOneRefusedRecordIsFoundByHalving(t *testing.T) {
	const n = 30_000
	b := newBroker()
	b.refuses["out"] = func(r *kgo.Record) error {
		if string(r.Value) == "17001" {
			return kerr.InvalidRecord
		}
		return nil
	}
	p := (&Topics{Output: "out", DeadLetter: "dead"}).NewOutgoing(n)
	for i := range n {
		p.Clean(numbered(i%6, i))
	}
	var refused []string
	if err := p.Send(t.Context(), b, buried(&refused)); err != nil {
		t.Fatal(err)
	}
	if b.flushes > 16 || b.produced > n+3*n/6 {
		t.Errorf("%d round trips and %d records", b.flushes, b.produced)
	}
}

// Of many records with one fault, those that are alike are not tried one by one.
func TestRecordsThatAreRefusedForTheSameReasonAreForeseen(t *testing.T) {
	const n, partitions = 30_000, 6
	now := time.Now()
	for _, c := range []struct {
		name  string
		spoil func(r *kgo.Record, i int)
		rule  func(r *kgo.Record) error
	}{
		{
			"times too far ahead", func(r *kgo.Record, i int) {
				r.Timestamp = now.Add(2*time.Hour + time.Duration(i*7919%997)*time.Second)
			},
			func(r *kgo.Record) error {
				return refuseIf(r.Timestamp.Sub(now) > time.Hour, kerr.InvalidTimestamp)
			},
		},
		{
			"times too old", func(r *kgo.Record, i int) {
				r.Timestamp = now.Add(-2*time.Hour - time.Duration(i*7919%997)*time.Second)
			},
			func(r *kgo.Record) error {
				return refuseIf(now.Sub(r.Timestamp) > time.Hour, kerr.InvalidTimestamp)
			},
		},
		{
			"no keys", func(r *kgo.Record, _ int) { r.Key = nil },
			func(r *kgo.Record) error { return refuseIf(r.Key == nil, kerr.InvalidRecord) },
		},
	} {
		for _, share := range []int{30, 1} { // one in 30 is spoiled, or all are
			t.Run(fmt.Sprintf("%s/one in %d", c.name, share), func(t *testing.T) {
				b := newBroker()
				b.refuses["out"] = c.rule
				p := (&Topics{Output: "out", DeadLetter: "dead",
					Compacted: map[string]bool{"out": true}}).NewOutgoing(n)
				bad := 0
				for i := range n {
					r := numbered(i%partitions, i)
					r.Timestamp = now
					if i%share == 0 {
						c.spoil(r, i)
						bad++
					}
					p.Clean(r)
				}
				var refused []string
				if err := p.Send(t.Context(), b, buried(&refused)); err != nil {
					t.Fatal(err)
				}
				if len(refused) != bad || b.flushes > 200 {
					t.Errorf("%d of %d records were refused, in %d round trips", len(refused), bad,
						b.flushes)
				}
			})
		}
	}
}

func refuseIf(bad bool, err error) error {
	if bad {
		return err
	}
	return nil
}

// A record that became too old while it was looked for is no sign that newer ones are refused.
func TestATimeAtTheBorderIsNoSign(t *testing.T) {
	now := time.Now()
	s := &isolator{taken: map[int32]*times{0: {now.Add(-10 * time.Second),
		now.Add(-10 * time.Second)}}, began: now.Add(-20 * time.Second)}
	if got := s.side(&kgo.Record{Timestamp: now.Add(-5 * time.Second)}, now); got != unsure {
		t.Errorf("got %d, want no conclusion", got)
	}
}

// Records of a batch that is too large together are sent apart, and none is a dead letter.
func TestABatchThatIsTooLargeTogetherIsSentInParts(t *testing.T) {
	b := newBroker()
	p := (&Topics{Output: "out", DeadLetter: "dead"}).NewOutgoing(100)
	var want []string
	for i := range 100 {
		p.Clean(numbered(0, i))
		want = append(want, strconv.Itoa(i))
	}
	limited := &small{b, 10}
	var refused []string
	if err := p.Send(t.Context(), limited, buried(&refused)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.texts("out[0]")); diff != "" || len(refused) > 0 ||
		!p.topics.Outdated() {
		t.Errorf("refused %v, outdated %t: %s", refused, p.topics.Outdated(), diff)
	}
}

// small is a broker that refuses a flush of more records.
type small struct {
	*broker
	most int
}

func (s *small) Flush(ctx context.Context) error {
	if len(s.buffer) <= s.most {
		return s.broker.Flush(ctx)
	}
	for _, h := range s.buffer {
		h.promise(h.record, kerr.MessageTooLarge)
	}
	s.buffer = nil
	return nil
}

// A dead letter is sent in a form that its topic takes.
func TestADeadLetterFindsAForm(t *testing.T) {
	old := numbered(1, 5)
	for _, c := range []struct {
		name   string
		record func() *kgo.Record
		limit  int
		rule   func(r *kgo.Record) error
		check  func(t *testing.T, out *kgo.Record)
		err    string
	}{
		{
			name: "another time", record: func() *kgo.Record { return old },
			rule: func(r *kgo.Record) error {
				return refuseIf(time.Since(r.Timestamp) > time.Hour, kerr.InvalidTimestamp)
			},
			check: func(t *testing.T, out *kgo.Record) {
				if time.Since(out.Timestamp) > time.Minute ||
					headerMap(out)[HeaderSourceTime] != "2023-11-14T22:13:20.005Z" ||
					string(out.Value) != "5" {
					t.Errorf("got %+v", out)
				}
			},
		},
		{
			name: "a made key and another time", record: func() *kgo.Record {
				r := *old
				r.Key = nil
				return &r
			},
			rule: func(r *kgo.Record) error {
				if r.Key == nil {
					return kerr.InvalidRecord
				}
				return refuseIf(time.Since(r.Timestamp) > time.Hour, kerr.InvalidTimestamp)
			},
			check: func(t *testing.T, out *kgo.Record) {
				if string(out.Key) != "in-1@5" || headerMap(out)[HeaderKey] != "made" ||
					time.Since(out.Timestamp) > time.Minute {
					t.Errorf("got %+v", out)
				}
			},
		},
		{
			name: "a stub, since its headers make it too large", limit: 400,
			record: func() *kgo.Record {
				r := *old
				r.Value = []byte(strings.Repeat("x", 300))
				return &r
			},
			check: isStub("k"),
		},
		{
			name: "a stub, since the broker says so",
			record: func() *kgo.Record {
				r := *old
				r.Value = []byte(strings.Repeat("x", 300))
				return &r
			},
			rule: func(r *kgo.Record) error {
				return refuseIf(len(r.Value) > 200, kerr.MessageTooLarge)
			},
			check: isStub("k"),
		},
		{
			name: "a stub without a key that is long", limit: 500,
			record: func() *kgo.Record {
				r := *old
				r.Key = []byte(strings.Repeat("x", 2000))
				r.Value = []byte(strings.Repeat("x", 300))
				return &r
			},
			check: isStub("in-1@5"),
		},
		{
			name: "none", record: func() *kgo.Record { return old },
			rule: func(*kgo.Record) error { return kerr.InvalidRecord },
			err:  "forward 1 records: dead-letter in[1]@5 (why): INVALID_RECORD",
		},
		{
			name: "the topic is gone", record: func() *kgo.Record { return old },
			rule: func(*kgo.Record) error { return kerr.UnknownTopicOrPartition },
			err: "forward 1 records: dead-letter in[1]@5 (why): to dead: " +
				"UNKNOWN_TOPIC_OR_PARTITION",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBroker()
			b.refuses["dead"] = c.rule
			topics := &Topics{Output: "out", DeadLetter: "dead"}
			if c.limit > 0 {
				topics.MaxBytes = map[string]int{"dead": c.limit}
			}
			p := topics.NewOutgoing(1)
			if err := p.DeadLetter(c.record(), "why", Note{}); err != nil {
				t.Fatal(err)
			}
			err := p.Send(t.Context(), b, Isolation{})
			if c.err != "" {
				var stuck *Stuck
				if err == nil || !strings.HasPrefix(err.Error(), c.err) ||
					!errors.As(err, &stuck) || stuck.Record.Offset != 5 {
					t.Errorf("got %v, want %s", err, c.err)
				}
				return
			}
			if err != nil || len(b.logs["dead[1]"]) != 1 {
				t.Fatalf("%d dead letters, %v", len(b.logs["dead[1]"]), err)
			}
			c.check(t, b.logs["dead[1]"][0])
		})
	}
}

func isStub(key string) func(*testing.T, *kgo.Record) {
	return func(t *testing.T, out *kgo.Record) {
		got := headerMap(out)
		if out.Value != nil || string(out.Key) != key || got[HeaderSourceSize] != "300" ||
			len(got[HeaderSourceSHA256]) != 64 ||
			got[HeaderReason] != "why" || got[HeaderSourceOffset] != "5" {
			t.Errorf("got %+v", out)
		}
	}
}

// A copy for the duplicates topic is a report: it is sent in another form, or not at all.
func TestARefusedDuplicateGoesInAnotherFormOrNotAtAll(t *testing.T) {
	b := newBroker()
	b.refuses["dup"] = func(r *kgo.Record) error {
		if string(r.Value) == "2" {
			return kerr.InvalidRecord
		}
		return refuseIf(r.Key == nil, kerr.InvalidRecord)
	}
	p := (&Topics{Output: "out", Duplicates: "dup"}).NewOutgoing(3)
	for i := range 3 {
		r := numbered(0, i)
		r.Key = nil
		p.Duplicate(r, Note{Verdict: "duplicate"})
		p.Clean(r)
	}
	if err := p.Send(t.Context(), b, Isolation{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0", "1"}, b.texts("dup[0]")); diff != "" {
		t.Error(diff)
	}
	if key := string(b.logs["dup[0]"][1].Key); key != "in-0@1" {
		t.Errorf("the key is %q", key)
	}
	if diff := cmp.Diff([]string{"0", "1", "2"}, b.texts("out[0]")); diff != "" {
		t.Error(diff)
	}
}

// The search ends in time; what was found by then has been told.
func TestTheSearchEndsInTime(t *testing.T) {
	b := newBroker()
	b.refuses["out"] = func(*kgo.Record) error { return kerr.InvalidRecord }
	p := (&Topics{Output: "out", DeadLetter: "dead"}).NewOutgoing(100)
	for i := range 100 {
		p.Clean(numbered(0, i))
	}
	var refused []string
	rules := buried(&refused)
	rules.Until = time.Now()
	if err := p.Send(t.Context(), b, rules); !errors.Is(err, ErrUnfinished) || len(refused) == 0 ||
		len(refused) == 100 {
		t.Errorf("%d were found, %v", len(refused), err)
	}
}
