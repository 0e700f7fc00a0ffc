package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// deliveries runs a test with both kinds of session.
func deliveries(t *testing.T, test func(t *testing.T, r *rig)) {
	for _, delivery := range []string{"exactly_once", "at_least_once"} {
		t.Run(delivery, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t)
			r := newRig(t, brokers)
			r.transactional = delivery == "exactly_once"
			test(t, r)
		})
	}
}

func TestFirstCopiesReachTheCleanTopicAndOthersDoNot(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.produce(message(0, "a", "A"), message(0, "b", "B"), message(0, "a", "A"),
			message(0, "c", "C"))
		run := r.start("one")
		r.waitCommitted(4)
		r.produce(message(1, "b", "B"), message(1, "d", "D"))
		r.waitCommitted(6)
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"0:A", "0:B", "0:C", "1:D"}, r.texts(output)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"0:A", "1:B"}, r.texts(duplicates)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(
			map[string]int{"forwarded": 4, "duplicate": 2}, r.outcomes(),
		); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRecordsAreForwardedByteForByte(t *testing.T) {
	id := func(id string) kgo.RecordHeader { return kgo.RecordHeader{Key: "id", Value: []byte(id)} }
	at := time.UnixMilli(1_600_000_000_123)
	cases := []*kgo.Record{
		{Key: nil, Value: []byte("no key"), Headers: []kgo.RecordHeader{id("1")}},
		{Key: []byte{}, Value: []byte("empty key"), Headers: []kgo.RecordHeader{id("2")}},
		{Key: []byte("tombstone"), Value: nil, Headers: []kgo.RecordHeader{id("3")}},
		{Key: []byte("empty value"), Value: []byte{}, Headers: []kgo.RecordHeader{id("4")}},
		{Value: []byte("headers"), Headers: []kgo.RecordHeader{
			{Key: "z", Value: []byte("1")}, id("5"), {Key: "a", Value: nil},
			{Key: "z", Value: []byte{}}, {Key: "", Value: []byte{0, 255}}, id("6"),
		}},
		{Value: []byte(strings.Repeat("x", 100_000)), Headers: []kgo.RecordHeader{id("7")}},
	}
	deliveries(t, func(t *testing.T, r *rig) {
		var sent []*kgo.Record
		for i, c := range cases {
			record := *c
			record.Topic, record.Partition, record.Timestamp = input, int32(i%partitions),
				at.Add(time.Duration(i)*time.Hour)
			sent = append(sent, &record)
		}
		r.produce(sent...)
		r.start("one")
		r.waitCommitted(int64(len(sent)))
		got := r.read(output)
		for i, want := range sent {
			if found := got[want.Partition][i/partitions]; !same(want, found) {
				t.Errorf("case %d: got %+v, want %+v", i, found, want)
			}
		}
	})
}

func TestOrderWithinAPartitionIsKept(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.batch = 50
		var records []*kgo.Record
		for i := range 4000 {
			records = append(records, message(i%partitions, fmt.Sprint("id-", i%3000),
				fmt.Sprint(i%3000)))
		}
		r.produce(records...)
		r.start("one")
		r.waitCommitted(int64(len(records)))
		clean := r.read(output)
		total := 0
		for p, found := range clean {
			last := -1
			for _, record := range found {
				var n int
				if _, err := fmt.Sscan(string(record.Value), &n); err != nil || n <= last {
					t.Fatalf("partition %d: %d after %d (%v)", p, n, last, err)
				}
				last = n
			}
			total += len(found)
		}
		if total != 3000 {
			t.Errorf("%d records on the clean topic, want 3000", total)
		}
	})
}

func TestPolicies(t *testing.T) {
	missing := func() *kgo.Record { return &kgo.Record{Topic: input, Value: []byte("M")} }
	cases := []struct {
		name             string
		policy           pipeline.Policy
		clean, dead, dup []string
		outcomes         map[string]int
	}{
		{
			"missing and conflicting records are dropped", pipeline.Policy{},
			[]string{"0:A"}, []string{}, []string{"0:A", "0:X"},
			map[string]int{"forwarded": 1, "duplicate": 1, "conflict": 1, "dropped": 1},
		},
		{
			"forwarded", pipeline.Policy{OnMissingID: pipeline.Forward,
				OnConflict: pipeline.Forward},
			[]string{"0:A", "0:M", "0:X"}, []string{}, []string{"0:A"},
			map[string]int{"forwarded": 2, "duplicate": 1, "passed_through": 1},
		},
		{
			"dead-lettered", pipeline.Policy{OnMissingID: pipeline.DeadLetter,
				OnConflict: pipeline.DeadLetter},
			[]string{"0:A"}, []string{"0:M", "0:X"}, []string{"0:A"},
			map[string]int{"forwarded": 1, "duplicate": 1, "dead_lettered": 2},
		},
		{
			"observe forwards everything", pipeline.Policy{Mode: pipeline.Observe},
			[]string{"0:A", "0:A", "0:M", "0:X"}, []string{}, []string{},
			map[string]int{"forwarded": 1, "passed_through": 3},
		},
		{
			"annotate forwards everything", pipeline.Policy{Mode: pipeline.Annotate},
			[]string{"0:A", "0:A", "0:M", "0:X"}, []string{}, []string{},
			map[string]int{"forwarded": 1, "passed_through": 3},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			deliveries(t, func(t *testing.T, r *rig) {
				r.policy = c.policy
				r.produce(message(0, "a", "A"), message(0, "a", "A"), message(0, "a", "X"),
					missing())
				r.start("one")
				r.waitCommitted(4)
				for topic, want := range map[string][]string{output: c.clean, deadTopic: c.dead,
					duplicates: c.dup} {
					if diff := cmp.Diff(want, r.texts(topic)); diff != "" {
						t.Errorf("%s: %s", topic, diff)
					}
				}
				if diff := cmp.Diff(c.outcomes, r.outcomes()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestFailOnMissingIDStopsWithThePlace(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.policy.OnMissingID = pipeline.Fail
		r.produce(message(2, "a", "A"), &kgo.Record{Topic: input, Partition: 2})
		err := r.start("one").wait()
		if err == nil || !strings.Contains(err.Error(), "orders[2]@1 has no message ID (absent)") {
			t.Errorf("got %v", err)
		}
		if n := r.committed(); n > 0 {
			t.Errorf("%d offsets committed", n)
		}
	})
}

func TestHeadersTellWhyARecordIsNotClean(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.policy.OnMissingID = pipeline.DeadLetter
		original, copied := message(0, "a", "A"), message(1, "a", "A")
		r.produce(original)
		r.start("one")
		r.waitCommitted(1)
		r.produce(copied, &kgo.Record{Topic: input, Partition: 3, Key: []byte("k")})
		r.waitCommitted(3)
		dup := r.read(duplicates)[1][0]
		checkHeaders(t, dup, map[string]string{
			"id": "a", forwarder.HeaderVerdict: "duplicate",
			forwarder.HeaderSourceTopic: input, forwarder.HeaderSourcePartition: "1",
			forwarder.HeaderSourceOffset:   "0",
			forwarder.HeaderOwnerPartition: "0", forwarder.HeaderOwnerOffset: "0",
		})
		dead := r.read(deadTopic)[3][0]
		checkHeaders(t, dead, map[string]string{
			forwarder.HeaderReason: "missing_id_absent", forwarder.HeaderSourcePartition: "3",
			forwarder.HeaderSourceOffset: "0",
		})
	})
}

func checkHeaders(t *testing.T, r *kgo.Record, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for _, h := range r.Headers {
		got[h.Key] = string(h.Value)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("header %s is %q, want %q", k, got[k], v)
		}
	}
}

func TestRecordsOverTheOutputsLimitAreDeadLettered(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.topics.MaxBytes = map[string]int{output: 1000}
		big := strings.Repeat("x", 2000)
		r.produce(message(0, "a", "A"), message(0, "b", big), message(0, "c", "C"))
		r.start("one")
		r.waitCommitted(3)
		if diff := cmp.Diff([]string{"0:A", "0:C"}, r.texts(output)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"0:" + big}, r.texts(deadTopic)); diff != "" {
			t.Error(diff)
		}
		checkHeaders(t, r.read(deadTopic)[0][0],
			map[string]string{forwarder.HeaderReason: "record_too_large"})
	})
}
