package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/pipeline"
)

// ordersOnly leaves out what is not marked as an order.
var ordersOnly = messageid.Rules{OnlyIf: &messageid.Condition{
	Place: messageid.Source{From: "header", Name: "type"}, Is: []string{"order"}}}

func order(partition int, id, text string) *kgo.Record {
	r := message(partition, id, text)
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: "type", Value: []byte("order")})
	return r
}

// Records that have no ID and such that share one are left out alike.
func TestRecordsThatOnlyIfLeavesOutPassUntouchedInEveryMode(t *testing.T) {
	for _, c := range []struct {
		mode     pipeline.Mode
		clean    []string
		outcomes map[string]int
	}{
		{pipeline.Enforce, []string{"A", "X", "X", "M", "B", "X"},
			map[string]int{"forwarded": 2, "duplicate": 1, "passed_through": 4}},
		{pipeline.Annotate, []string{"A", "X", "X", "A", "M", "B", "X"},
			map[string]int{"forwarded": 2, "passed_through": 5}},
		{pipeline.Observe, []string{"A", "X", "X", "A", "M", "B", "X"},
			map[string]int{"forwarded": 2, "passed_through": 5}},
	} {
		t.Run(fmt.Sprint(c.mode), func(t *testing.T) {
			deliveries(t, func(t *testing.T, r *rig) {
				r.rules, r.policy.Mode, r.policy.OnMissingID = ordersOnly, c.mode, pipeline.Fail
				none := &kgo.Record{Topic: input, Value: []byte("M")}
				left := []*kgo.Record{message(0, "a", "X"), message(0, "a", "X"), none,
					message(0, "a", "X")}
				r.produce(order(0, "a", "A"), left[0], left[1], order(0, "a", "A"), left[2],
					order(0, "b", "B"), left[3])
				r.start("one")
				r.waitCommitted(7)
				got := r.read(output)[0]
				if diff := cmp.Diff(c.clean, valuesOf(got)); diff != "" {
					t.Errorf("clean topic (-want +got):\n%s", diff)
				}
				for i, record := range got {
					switch value := string(record.Value); {
					case value == "X" || value == "M":
						if !same(left[0], record) {
							t.Errorf("record %d was touched: %v", i, record.Headers)
						}
						left = left[1:]
					case c.mode == pipeline.Annotate && i == 0:
						checkHeaders(t, record, map[string]string{
							forwarder.HeaderVerdict: "first"})
					}
				}
				if diff := cmp.Diff(c.outcomes, r.outcomes()); diff != "" {
					t.Error(diff)
				}
				if n := r.counter("kdedup_verdicts_total", "verdict", "exempt"); n != 4 {
					t.Errorf("%v records are exempt, want 4", n)
				}
				if n := r.counter("kdedup_verdicts_total", "verdict", "missing"); n != 0 {
					t.Errorf("%v records miss an ID", n)
				}
			})
		})
	}
}

// A producer that sends a message again, with the time of the attempt in it.
func TestCopiesThatDifferInIgnoredFieldsAreDuplicates(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.rules = messageid.Rules{Fingerprint: messageid.Content{Ignore: []string{"at"}}}
		var sent []*kgo.Record
		for _, text := range []string{`{"n":1,"at":1}`, `{"at":2,"n":1}`, `{"n":2,"at":1}`} {
			copied := message(0, "a", text)
			copied.Key = []byte("k")
			sent = append(sent, copied)
		}
		r.produce(sent...)
		r.start("one")
		r.waitCommitted(3)
		want := map[string]int{"forwarded": 1, "duplicate": 1, "conflict": 1}
		if diff := cmp.Diff(want, r.outcomes()); diff != "" {
			t.Error(diff)
		}
		if got := r.read(output)[0]; len(got) != 1 || !same(sent[0], got[0]) {
			t.Errorf("the clean topic has %v", valuesOf(got))
		}
	})
}

// A compacted topic forgets a key by a tombstone, whose key is the ID of what it deletes.
func TestTombstonesGoWhereTheyAreSent(t *testing.T) {
	for _, c := range []struct {
		name     string
		rules    messageid.Rules
		policy   pipeline.Policy
		clean    []string // of the key's history: + a value, - a tombstone
		dead     int
		outcomes map[string]int
	}{
		{"as any record", messageid.Rules{}, pipeline.Policy{}, []string{"+", "+"}, 0,
			map[string]int{"forwarded": 2, "conflict": 2, "duplicate": 1}},
		{"forward", messageid.Rules{Tombstones: true},
			pipeline.Policy{OnTombstone: pipeline.Forward}, []string{"+", "-", "-", "+"}, 0,
			map[string]int{"forwarded": 2, "passed_through": 2, "duplicate": 1}},
		{"dead letter", messageid.Rules{Tombstones: true},
			pipeline.Policy{OnTombstone: pipeline.DeadLetter}, []string{"+", "+"}, 2,
			map[string]int{"forwarded": 2, "dead_lettered": 2, "duplicate": 1}},
		{"drop", messageid.Rules{Tombstones: true}, pipeline.Policy{OnTombstone: pipeline.Drop},
			[]string{"+", "+"}, 0,
			map[string]int{"forwarded": 2, "dropped": 2, "duplicate": 1}},
		{"observe", messageid.Rules{Tombstones: true},
			pipeline.Policy{Mode: pipeline.Observe, OnTombstone: pipeline.Drop},
			[]string{"+", "-", "-", "+", "+"}, 0,
			map[string]int{"forwarded": 2, "passed_through": 3}},
		{"annotate", messageid.Rules{Tombstones: true},
			pipeline.Policy{Mode: pipeline.Annotate, OnTombstone: pipeline.Drop},
			[]string{"+", "-", "-", "+", "+"}, 0,
			map[string]int{"forwarded": 2, "passed_through": 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			deliveries(t, func(t *testing.T, r *rig) {
				r.rules, r.policy = c.rules, c.policy
				gone := func() *kgo.Record {
					tombstone := message(0, "a", "")
					tombstone.Value = nil
					return tombstone
				}
				r.produce(message(0, "a", "A"), gone(), gone(), message(0, "b", "B"),
					message(0, "b", "B"))
				r.start("one")
				r.waitCommitted(5)
				var clean []string
				for _, record := range r.read(output)[0] {
					sign := "+"
					if record.Value == nil {
						sign = "-"
					}
					clean = append(clean, sign)
				}
				if diff := cmp.Diff(c.clean, clean); diff != "" {
					t.Errorf("clean topic (-want +got):\n%s", diff)
				}
				dead := r.read(deadTopic)[0]
				if len(dead) != c.dead {
					t.Errorf("%d dead letters, want %d", len(dead), c.dead)
				}
				for _, record := range dead {
					checkHeaders(t, record, map[string]string{
						forwarder.HeaderReason: "tombstone"})
				}
				if diff := cmp.Diff(c.outcomes, r.outcomes()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func valuesOf(records []*kgo.Record) (values []string) {
	for _, r := range records {
		values = append(values, string(r.Value))
	}
	return values
}

// With exactly_once a batch that is repeated forwards its exempt records once, in their order among
// the others; with at_least_once all of the batch may come again.
func TestExemptRecordsKeepTheirOrderThroughFailures(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		commit := sometimes(4, errors.New("no"))
		r.join = func(s pipeline.Session) pipeline.Session {
			return &failing{s, func() error { return nil }, commit}
		}
		r.rules, r.batch, r.lanes = ordersOnly, 100, 1
		const n = 1200
		want := make([][]string, partitions)
		for i := range n {
			p, text := i%partitions, fmt.Sprint(i)
			switch i / partitions % 3 {
			case 0:
				r.produce(order(p, text, text))
				want[p] = append(want[p], text)
			case 1: // a copy of the one before
				r.produce(order(p, fmt.Sprint(i-partitions), fmt.Sprint(i-partitions)))
			default:
				r.produce(message(p, "same", text))
				want[p] = append(want[p], text)
			}
		}
		r.start("one")
		r.waitCommitted(n)
		for p, records := range r.read(output) {
			got := valuesOf(records)
			if !r.transactional {
				slices.SortStableFunc(got, byNumber)
				got = slices.Compact(got)
			}
			if diff := cmp.Diff(want[p], got); diff != "" {
				t.Errorf("partition %d (-want +got):\n%s", p, diff)
			}
		}
	})
}

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	if a < b {
		return -1
	} else if a > b {
		return 1
	}
	return 0
}

// A first batch in which no ID is looked for says nothing about message_id.
func TestExemptRecordsDoNotShowThatMessageIDFindsSomething(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.rules, s.lanes, s.policy.OnMissingID = ordersOnly, 1, pipeline.DeadLetter
		asked := make(chan struct{}, 100)
		s.identify = func(_ context.Context) error {
			asked <- struct{}{}
			return nil
		}
		s.produce(message(0, "a", "X"))
		s.start("one")
		s.waitCommitted(1)
		if len(asked) > 0 {
			t.Error("the input was asked about a batch in which no ID is looked for")
		}
		bare := order(0, "", "B")
		bare.Headers = bare.Headers[1:]
		s.produce(bare)
		s.waitCommitted(2)
		if len(asked) != 1 {
			t.Errorf("the input was asked %d times about a batch without an ID", len(asked))
		}
		checkHeaders(t, s.read(deadTopic)[0][0],
			map[string]string{forwarder.HeaderReason: "missing_id_absent"})
	})
}
