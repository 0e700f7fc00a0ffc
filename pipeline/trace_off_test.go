package pipeline

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
)

// untraced is what the lane does for traces with a batch, when there is no tracer.
func untraced(b *consumer.Batch, judgements []dedup.Judgement) {
	trace := (&Options{}).tracer().Begin(0, b, time.Now())
	trace.Step(stepClaim)
	for i := range b.Records {
		trace.Decided(i, &judgements[i], Forwarded)
	}
	trace.Step(stepForward)
	trace.Step(stepCommit)
	trace.Span()
	trace.Spans()
	trace.End(endingOf(nil))
}

func TestWithoutATracerNothingIsAllocated(t *testing.T) {
	b, judgements := &consumer.Batch{Records: make([]consumer.Record, 100)},
		make([]dedup.Judgement, 100)
	if n := testing.AllocsPerRun(100, func() { untraced(b, judgements) }); n != 0 {
		t.Errorf("%v allocations for each batch", n)
	}
}

// BenchmarkWithoutATracer is what a batch of 5000 records costs more than before there were traces.
func BenchmarkWithoutATracer(b *testing.B) {
	const records = 5000
	batch, judgements := &consumer.Batch{Records: make([]consumer.Record, records)},
		make([]dedup.Judgement, records)
	b.ReportAllocs()
	for b.Loop() {
		untraced(batch, judgements)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}
