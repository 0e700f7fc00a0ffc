package pipeline_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/pipeline/tracing"
)

// spans has the rig's pipelines traced, with this share of the batches, and keeps what ends. One
// lane is all they have: a second one's joining would give a batch back, whose spans then stand
// twice.
func (r *rig) spans(ratio float64, id func(*kgo.Record) string) *tracetest.InMemoryExporter {
	r.lanes = 1
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept),
		sdktrace.WithSampler(tracing.Sampler(ratio)))
	r.tracer = tracing.NewTracer(provider,
		tracing.Topic{Input: input, ConsumerGroup: group, ID: id})
	return kept
}

// named returns the spans with a name, in the order of their records.
func named(kept *tracetest.InMemoryExporter, name string) (found tracetest.SpanStubs) {
	for _, s := range kept.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// attributes are those of a span, as text.
func attributes(s tracetest.SpanStub) map[string]string {
	texts := make(map[string]string)
	for _, a := range s.Attributes {
		texts[string(a.Key)] = a.Value.String()
	}
	return texts
}

const (
	producersTrace = "0af7651916cd43dd8448eb211c80319c"
	producersSpan  = "b7ad6b7169203331"
)

// traced is a message with the context of its producer's span; flags are 01 if that is sampled.
func traced(r *kgo.Record, flags string) *kgo.Record {
	r.Headers = append(r.Headers,
		kgo.RecordHeader{Key: "traceparent",
			Value: []byte("00-" + producersTrace + "-" + producersSpan + "-" + flags)},
		kgo.RecordHeader{Key: "tracestate", Value: []byte("vendor=1")})
	return r
}

func TestASampledRecordHasASpanInItsProducersTrace(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		kept := r.spans(0, nil)
		broken := message(0, "d", "D")
		broken.Headers = append(broken.Headers,
			kgo.RecordHeader{Key: "traceparent", Value: []byte{0xff, 'x'}})
		r.produce(traced(message(0, "a", "A"), "01"), traced(message(0, "b", "B"), "00"),
			message(0, "c", "C"), broken)
		run := r.start("one")
		r.waitCommitted(4)
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		all := kept.GetSpans()
		if len(all) != 1 {
			t.Fatalf("%d spans, want one: %v", len(all), all)
		}
		s := all[0]
		if s.SpanContext.TraceID().String() != producersTrace ||
			s.Parent.SpanID().String() != producersSpan || !s.Parent.IsRemote() {
			t.Errorf("the span is in trace %s below %s", s.SpanContext.TraceID(), s.Parent.SpanID())
		}
		if s.SpanKind != trace.SpanKindConsumer || s.Status.Code != codes.Unset ||
			s.EndTime.Before(s.StartTime) || len(s.Links) > 0 {
			t.Errorf("got %+v", s)
		}
		want := map[string]string{
			"messaging.system": "kafka", "messaging.operation.type": "process",
			"messaging.operation.name":   "process",
			"messaging.destination.name": "orders", "messaging.destination.partition.id": "0",
			"messaging.kafka.offset":        "0",
			"messaging.consumer.group.name": "orders-dedup",
			"kdedup.verdict":                "first", "kdedup.outcome": "forwarded",
			"kdedup.batch.result": "committed",
		}
		if diff := cmp.Diff(want, attributes(s)); diff != "" || s.Name != "process orders" {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
	})
}

// Consumers of the clean topic join the producer's trace too: its headers reach them as they were.
func TestTracesChangeNoRecord(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.spans(1, nil)
		twice := traced(traced(message(0, "a", "A"), "01"), "00")
		odd := message(0, "b", "B")
		odd.Headers = append(odd.Headers, kgo.RecordHeader{Key: "Traceparent", Value: nil},
			kgo.RecordHeader{Key: "tracestate", Value: []byte{0, 255}})
		sent := []*kgo.Record{twice, odd, traced(message(0, "c", "C"), "01"), message(0, "d", "D")}
		for i, record := range sent {
			record.Timestamp = time.UnixMilli(1_700_000_000_000 + int64(i))
		}
		r.produce(sent...)
		r.start("one")
		r.waitCommitted(4)
		got := r.read(output)[0]
		for i, want := range sent {
			if !same(want, got[i]) {
				t.Errorf("record %d: got %+v, want %+v", i, got[i], want)
			}
		}
	})
}

func TestSpansTellWhatBecameOfTheirRecords(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		kept := r.spans(0, nil)
		r.policy.OnMissingID = pipeline.DeadLetter
		nameless := &kgo.Record{Topic: input, Partition: 0}
		for _, m := range []*kgo.Record{message(0, "a", "A"), message(0, "a", "A"),
			message(0, "a", "X"), nameless} {
			r.produce(traced(m, "01"))
		}
		run := r.start("one")
		r.waitCommitted(4)
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		spans := named(kept, "process orders")
		if len(spans) != 4 {
			t.Fatalf("%d spans, want 4", len(spans))
		}
		owner := map[string]string{"kdedup.owner.partition": "0", "kdedup.owner.offset": "0"}
		for i, want := range []struct {
			outcome, verdict string
			more             map[string]string
		}{
			{"forwarded", "first", nil},
			{"duplicate", "duplicate", owner},
			{"conflict", "conflict", owner},
			{"dead_lettered", "missing", map[string]string{"kdedup.missing_reason": "absent",
				"messaging.kafka.message.tombstone": "true"}},
		} {
			got := attributes(spans[i])
			if got["kdedup.outcome"] != want.outcome || got["kdedup.verdict"] != want.verdict {
				t.Errorf("record %d is %s, %s", i, got["kdedup.outcome"], got["kdedup.verdict"])
			}
			for name, value := range want.more {
				if got[name] != value {
					t.Errorf("record %d has %s %q, want %q", i, name, got[name], value)
				}
			}
			hasOwner := len(got["kdedup.owner.topic_id"]) == 32 && got["kdedup.claimed_at"] != ""
			if hasOwner != (want.more["kdedup.owner.offset"] != "") {
				t.Errorf("record %d tells of the owner: %t", i, hasOwner)
			}
		}
	})
}

func TestSpansTellIDsOnlyWhenAsked(t *testing.T) {
	for _, ask := range []bool{false, true} {
		t.Run(fmt.Sprint(ask), func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t)
			r := newRig(t, brokers)
			var id func(*kgo.Record) string
			if ask {
				id = func(r *kgo.Record) string { return string(r.Headers[0].Value) }
			}
			kept := r.spans(1, id)
			r.produce(traced(message(0, "customer-7", "secret text"), "01"),
				traced(message(0, "\xff\x00", "secret text"), "01"))
			run := r.start("one")
			r.waitCommitted(2)
			if err := run.stop(); err != nil {
				t.Error(err)
			}
			if text := fmt.Sprintf("%+v", kept.GetSpans()); strings.Contains(text, "secret text") ||
				strings.Contains(text, "customer-7") != ask {
				t.Errorf("IDs and values in the spans: %s", text)
			}
			var got []string
			for _, s := range named(kept, "process orders") {
				got = append(got, attributes(s)["kdedup.message_id"])
			}
			want := []string{"", ""}
			if ask {
				want = []string{"customer-7", "hex:ff00"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("IDs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABatchHasATraceWithItsStepsAndLinks(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		const n = 130
		kept := r.spans(1, nil)
		r.batch = 1000
		var records []*kgo.Record
		for i := range n {
			records = append(records, traced(message(0, fmt.Sprint(i), "text"), "01"))
		}
		r.produce(records...)
		run := r.start("one")
		r.waitCommitted(n)
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		batches, linked := named(kept, "batch orders"), 0
		for _, b := range batches {
			linked += len(b.Links)
			checkSteps(t, kept, b)
		}
		if len(batches) == 0 || linked > 100*len(batches) || linked < min(n, 100) {
			t.Errorf("%d batches have %d links", len(batches), linked)
		}
		for _, s := range named(kept, "process orders") {
			if len(s.Links) != 1 || !slices.ContainsFunc(batches, func(b tracetest.SpanStub) bool {
				return b.SpanContext.Equal(s.Links[0].SpanContext)
			}) {
				t.Fatalf("a record links to %v", s.Links)
			}
		}
	})
}

// checkSteps sees that a batch that was committed took its steps one after the other.
func checkSteps(t *testing.T, kept *tracetest.InMemoryExporter, b tracetest.SpanStub) {
	t.Helper()
	var steps []string
	end := b.StartTime
	for _, s := range kept.GetSpans() {
		if s.Parent.SpanID() != b.SpanContext.SpanID() {
			continue
		}
		steps = append(steps, s.Name)
		if s.StartTime.Before(end) || s.EndTime.Before(s.StartTime) || s.EndTime.After(b.EndTime) {
			t.Errorf("%s is from %v to %v; the step before ended at %v, the batch at %v", s.Name,
				s.StartTime, s.EndTime, end, b.EndTime)
		}
		end = s.EndTime
	}
	if diff := cmp.Diff([]string{"poll", "claim", "forward", "commit"}, steps); diff != "" ||
		b.Parent.IsValid() {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := attributes(b); got["kdedup.batch.result"] != "committed" ||
		got["messaging.batch.message_count"] == "0" || got["kdedup.lane"] != "0" {
		t.Errorf("got %v", got)
	}
}

func TestABatchThatIsGivenBackEndsItsSpansWithThat(t *testing.T) {
	for _, c := range []struct {
		name           string
		err            error
		result, reason string
	}{
		{"by a rebalance", consumer.ErrRevoked, "aborted", "rebalance"},
		{"by an error", errors.New("no answer"), "failed", "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			deliveries(t, func(t *testing.T, r *rig) {
				kept := r.spans(1, nil)
				var failed atomic.Bool
				begin := func() error {
					if failed.Swap(true) {
						return nil
					}
					return c.err
				}
				r.join = func(s pipeline.Session) pipeline.Session {
					return &failing{s, begin, func() error { return nil }}
				}
				r.produce(traced(message(0, "a", "A"), "01"))
				run := r.start("one")
				r.waitCommitted(1)
				if err := run.stop(); err != nil {
					t.Error(err)
				}
				for _, name := range []string{"batch orders", "process orders", "forward"} {
					checkGivenBack(t, named(kept, name)[0], c.result, c.reason, c.err)
				}
				records := named(kept, "process orders")
				last := attributes(records[len(records)-1])
				if last["kdedup.batch.result"] != "committed" ||
					last["kdedup.outcome"] != "forwarded" || last["kdedup.verdict"] != "mine" {
					t.Errorf("the last attempt: %v", last)
				}
				if events := named(kept, "batch orders")[0].Events; len(events) != 1 ||
					events[0].Name != "exception" {
					t.Errorf("the error is recorded as %v", events)
				}
			})
		})
	}
}

func checkGivenBack(t *testing.T, s tracetest.SpanStub, result, reason string, why error) {
	t.Helper()
	got := attributes(s)
	if s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, why.Error()) {
		t.Errorf("%s ended with %+v", s.Name, s.Status)
	}
	if got["kdedup.batch.result"] != result || got["error.type"] != reason {
		t.Errorf("%s has %v", s.Name, got)
	}
	if outcome, has := got["kdedup.outcome"]; has {
		t.Errorf("%s claims the outcome %s, which was not committed", s.Name, outcome)
	}
}
