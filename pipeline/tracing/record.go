package tracing

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/pipeline"
)

// record is the span of one record.
type record struct {
	index   int // in the batch
	span    trace.Span
	decided bool
	outcome pipeline.Outcome
}

// begin makes a span in the trace of the record's producer, if that trace is sampled. Of kotel only
// the reader of headers is used: its hooks would write the context of spans of their own into the
// records that are forwarded.
func (b *batch) begin(index int, r *kgo.Record, at time.Time) {
	producer := propagation.TraceContext{}.Extract(context.Background(), kotel.NewRecordCarrier(r))
	if !trace.SpanContextFromContext(producer).IsSampled() {
		return
	}
	options := []trace.SpanStartOption{
		trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(b.record...),
		trace.WithAttributes(
			semconv.MessagingDestinationPartitionID(strconv.Itoa(int(r.Partition))),
			semconv.MessagingKafkaOffset(int(r.Offset)),
		),
	}
	if own := b.span.SpanContext(); own.IsSampled() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: own}))
	}
	_, span := b.tracer.Start(producer, "process "+b.topic.Input, options...)
	if r.Value == nil {
		span.SetAttributes(semconv.MessagingKafkaMessageTombstone(true))
	}
	if b.topic.ID != nil {
		if id := b.topic.ID(r); id != "" {
			span.SetAttributes(keyID.String(idText(id)))
		}
	}
	b.records = append(b.records, record{index: index, span: span})
}

// Decided implements pipeline.Trace.
func (b *batch) Decided(index int, j *dedup.Judgement, o pipeline.Outcome) {
	if b.next == len(b.records) || b.records[b.next].index != index {
		return
	}
	r := &b.records[b.next]
	b.next++
	r.decided, r.outcome = true, o
	r.span.SetAttributes(keyVerdict.String(j.Verdict.String()))
	switch j.Verdict {
	case dedup.VerdictMissing:
		r.span.SetAttributes(keyMissing.String(j.Missing.String()))
	case dedup.VerdictDuplicate, dedup.VerdictConflict:
		r.span.SetAttributes(
			keyOwnerTopicID.String(hex.EncodeToString(j.Owner.TopicID[:])),
			keyOwnerPart.Int(int(j.Owner.Partition)), keyOwnerOffset.Int64(j.Owner.Offset),
			keyClaimedAt.String(j.ClaimedAt.UTC().Format(timeFormat)),
		)
	}
}

// Revised implements pipeline.Trace.
func (b *batch) Revised(index int, o pipeline.Outcome) {
	at, sampled := slices.BinarySearchFunc(b.records, index, func(r record, index int) int {
		return r.index - index
	})
	if sampled {
		b.records[at].outcome = o
	}
}

// timeFormat is that of the headers.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// end tells what became of the record: only a commit makes an outcome true.
func (r *record) end(e pipeline.Ending, at trace.SpanEndOption) {
	if r.decided && e.Err == nil {
		r.span.SetAttributes(keyOutcome.String(r.outcome.String()))
	}
	conclude(r.span, e)
	r.span.End(at)
}
