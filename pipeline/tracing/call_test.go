package tracing

import (
	"errors"
	"net/http"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kdedup/kdedup/internal/api"
)

// FuzzCalls sees that nothing that a caller sends brings the tracer down, or gets into a span that
// cannot be exported.
func FuzzCalls(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1", "orders", "why")
	f.Add("\xff", "\x00", "\xff\xfe", "\xff")
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(Sampler(1)),
		sdktrace.WithSyncer(mustEncode{f}))
	calls := newCalls(provider)
	f.Fuzz(func(t *testing.T, parent, state, scope, why string) {
		span := calls.Begin(http.Header{"Traceparent": {parent}, "Tracestate": {state}},
			"kdedup.v1.ClaimService/Judge")
		if span == nil {
			return // its caller does not sample
		}
		if labels := span.Exemplar(); len(labels["trace_id"]) != 32 {
			t.Errorf("the exemplar is %v", labels)
		}
		span.End(&api.Call{Procedure: "kdedup.v1.ClaimService/Judge", Scope: scope, Caller: scope,
			Outcome: scope, Code: "unavailable", Err: errors.New(why)})
	})
}

func TestACallerWithoutATraceIsTracedByTheRatio(t *testing.T) {
	for ratio, want := range map[float64]bool{0: false, 1: true} {
		calls := newCalls(sdktrace.NewTracerProvider(sdktrace.WithSampler(Sampler(ratio))))
		if span := calls.Begin(http.Header{}, "kdedup.v1.ClaimService/Judge"); (span != nil) !=
			want {
			t.Errorf("ratio %v: %v", ratio, span)
		}
	}
}
