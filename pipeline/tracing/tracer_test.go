package tracing

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTextsFromOutsideCanBeExported(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"text", "böse", "böse"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"long", strings.Repeat("x", 3000), strings.Repeat("x", 2000)},
		{"cut within a character", "x" + strings.Repeat("é", 1000), "x" + strings.Repeat("é", 999) +
			"\uFFFD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, clean(c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := (cleanError{errors.New(c.text)}).Error(); !utf8.ValidString(got) {
				t.Errorf("an error's text is not UTF-8: %q", got)
			}
		})
	}
}

func TestIDsThatAreNotTextAreShownByTheirBytes(t *testing.T) {
	for id, want := range map[string]string{
		"order-7": "order-7", "\x00\xff": "hex:00ff", strings.Repeat("\xff", 4000): "hex:" +
			strings.Repeat("ff", 1000),
	} {
		if got := idText(id); got != want {
			t.Errorf("%q is shown as %q", id, got)
		}
	}
}

// FuzzTracing sees that no header brings the tracer down or gets into a span that cannot be
// exported.
func FuzzTracing(f *testing.F) {
	f.Add([]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), []byte("vendor=1"),
		[]byte("id"))
	f.Add([]byte{0xff}, []byte{0}, []byte{})
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(Sampler(1)),
		sdktrace.WithSyncer(mustEncode{f}))
	tracer := NewTracer(provider, Topic{Input: "orders", ID: func(r *kgo.Record) string {
		return string(r.Key)
	}})
	f.Fuzz(func(_ *testing.T, parent, state, id []byte) {
		r := &kgo.Record{Key: id, Headers: []kgo.RecordHeader{{Key: "traceparent", Value: parent},
			{Key: "tracestate", Value: state}}}
		trace := tracer.Begin(0, &consumer.Batch{Records: []consumer.Record{{Record: r}}},
			time.Now())
		trace.Decided(0, &dedup.Judgement{}, pipeline.Forwarded)
		trace.End(pipeline.Ending{Result: "failed", Reason: "other", Err: errors.New(string(id))})
	})
}

// BenchmarkTracer is what a batch of 5000 records costs with traces, up to the queue.
func BenchmarkTracer(b *testing.B) {
	const n = 5000
	parent := func(flags string) []kgo.RecordHeader {
		return []kgo.RecordHeader{
			{Key: "id", Value: []byte("7")},
			{Key: "traceparent",
				Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-" + flags)},
		}
	}
	for _, c := range []struct {
		name    string
		headers []kgo.RecordHeader
	}{
		{"no context", parent("00")[:1]}, {"not sampled", parent("00")}, {"sampled", parent("01")},
	} {
		b.Run(c.name, func(b *testing.B) {
			provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(Sampler(0)),
				sdktrace.WithSpanProcessor(nowhere{}))
			tracer := NewTracer(provider, Topic{Input: "orders", ConsumerGroup: "orders-dedup"})
			batch, judgement := &consumer.Batch{}, &dedup.Judgement{Verdict: dedup.VerdictFirst}
			for range n {
				batch.Records = append(batch.Records,
					consumer.Record{Record: &kgo.Record{Headers: c.headers, Value: []byte("v")}})
			}
			b.ReportAllocs()
			for b.Loop() {
				trace := tracer.Begin(0, batch, time.Now())
				for i := range n {
					trace.Decided(i, judgement, pipeline.Forwarded)
				}
				trace.End(pipeline.Ending{Result: "committed"})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}
