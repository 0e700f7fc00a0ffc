package tracing

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/pipeline"
)

// Topic is what the spans of a pipeline tell about it.
type Topic struct {
	Input         string
	ConsumerGroup string
	// ID returns the message ID of a record, empty if it has none. Nil keeps IDs out of the spans.
	ID func(*kgo.Record) string
}

// Tracer makes the spans of one pipeline.
type Tracer struct {
	tracer trace.Tracer
	topic  Topic
	batch  []attribute.KeyValue // what all spans of batches have in common
	record []attribute.KeyValue // of records
}

var _ pipeline.Tracer = (*Tracer)(nil)

// scope is the name of the instrumentation.
const scope = "github.com/kdedup/kdedup"

// NewTracer makes spans of the provider, whose sampler should be that of Sampler.
func NewTracer(provider trace.TracerProvider, topic Topic) *Tracer {
	all := func(operation string, kind attribute.KeyValue) []attribute.KeyValue {
		return []attribute.KeyValue{
			semconv.MessagingSystemKafka, semconv.MessagingDestinationName(topic.Input),
			semconv.MessagingConsumerGroupName(topic.ConsumerGroup),
			semconv.MessagingOperationName(operation), kind,
		}
	}
	return &Tracer{
		tracer: provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), topic: topic,
		batch:  all("batch", semconv.MessagingOperationTypeProcess),
		record: all("process", semconv.MessagingOperationTypeProcess),
	}
}

// Sampler keeps the spans of records whose producer's trace is sampled, and this share of the
// batches.
func Sampler(ratio float64) sdktrace.Sampler {
	return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))
}

// Attributes that no convention has. Their values are those of the metrics and of the headers.
const (
	keyLane         = attribute.Key("kdedup.lane")
	keyResult       = attribute.Key("kdedup.batch.result")
	keyTraced       = attribute.Key("kdedup.batch.traced_records")
	keyOutcome      = attribute.Key("kdedup.outcome")
	keyVerdict      = attribute.Key("kdedup.verdict")
	keyMissing      = attribute.Key("kdedup.missing_reason")
	keyID           = attribute.Key("kdedup.message_id")
	keyOwnerTopicID = attribute.Key("kdedup.owner.topic_id")
	keyOwnerPart    = attribute.Key("kdedup.owner.partition")
	keyOwnerOffset  = attribute.Key("kdedup.owner.offset")
	keyClaimedAt    = attribute.Key("kdedup.claimed_at")
)

// batch is the trace of one batch and the spans of its records.
type batch struct {
	*Tracer
	ctx     context.Context // holds span
	span    trace.Span      // records nothing unless the batch is sampled
	step    trace.Span      // the open one; nil before the first
	records []record        // those that have a span, in the order of the batch
	next    int             // the first of them that is not decided
}

// Begin implements pipeline.Tracer.
func (t *Tracer) Begin(lane int, polled *consumer.Batch, since time.Time) pipeline.Trace {
	now := time.Now()
	b := &batch{Tracer: t}
	b.ctx, b.span = t.tracer.Start(context.Background(), "batch "+t.topic.Input,
		trace.WithTimestamp(since), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(t.batch...))
	if b.span.IsRecording() {
		b.span.SetAttributes(keyLane.Int(lane),
			semconv.MessagingBatchMessageCount(len(polled.Records)))
		_, poll := t.tracer.Start(b.ctx, "poll", trace.WithTimestamp(since))
		poll.End(trace.WithTimestamp(now))
	}
	for i := range polled.Records {
		b.begin(i, polled.Records[i].Record, now)
	}
	b.link()
	return b
}

// maxLinks bounds the links of a batch. The records of the others link to it.
const maxLinks = 100

func (b *batch) link() {
	if !b.span.IsRecording() {
		return
	}
	b.span.SetAttributes(keyTraced.Int(len(b.records)))
	for _, r := range b.records[:min(len(b.records), maxLinks)] {
		b.span.AddLink(trace.Link{SpanContext: r.span.SpanContext()})
	}
}

// Step implements pipeline.Trace.
func (b *batch) Step(name string) {
	if !b.span.IsRecording() {
		return
	}
	now := trace.WithTimestamp(time.Now())
	if b.step != nil {
		b.step.End(now)
	}
	_, b.step = b.tracer.Start(b.ctx, name, now)
}

// Span implements pipeline.Trace.
func (b *batch) Span() telemetry.Span { return sampled(b.span) }

// Spans implements pipeline.Trace.
func (b *batch) Spans() []pipeline.RecordSpan {
	all := make([]pipeline.RecordSpan, len(b.records))
	for i, r := range b.records {
		all[i] = pipeline.RecordSpan{Record: r.index, Span: sampled(r.span)}
	}
	return all
}

// sampled names a span that is sent.
func sampled(s trace.Span) telemetry.Span {
	if c := s.SpanContext(); c.IsSampled() {
		return telemetry.Span{TraceID: c.TraceID(), ID: c.SpanID()}
	}
	return telemetry.Span{}
}

// End implements pipeline.Trace.
func (b *batch) End(e pipeline.Ending) {
	now := trace.WithTimestamp(time.Now())
	for i := range b.records {
		b.records[i].end(e, now)
	}
	if !b.span.IsRecording() {
		return
	}
	if b.step != nil {
		conclude(b.step, e)
		b.step.End(now)
	}
	if e.Err != nil {
		b.span.RecordError(cleanError{e.Err}, now)
	}
	conclude(b.span, e)
	b.span.End(now)
}

// conclude says how the batch ended.
func conclude(span trace.Span, e pipeline.Ending) {
	span.SetAttributes(keyResult.String(e.Result))
	if e.Err != nil {
		span.SetAttributes(semconv.ErrorTypeKey.String(e.Reason))
		span.SetStatus(codes.Error, clean(e.Err.Error()))
	}
}

// cleanError is an error whose text can be exported.
type cleanError struct{ error }

func (e cleanError) Error() string { return clean(e.error.Error()) }

func (e cleanError) Unwrap() error { return e.error }

// maxText is the most bytes of a text from outside.
const maxText = 2000

// clean makes a text from outside fit for a span: with a byte that is not UTF-8 the exporter could
// not encode any span that travels with it.
func clean(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
}

// idText shows an ID that is not text by its bytes, as `kdedup id lookup --hex` takes it.
func idText(id string) string {
	if strings.ToValidUTF8(id, "") == id {
		return clean(id)
	}
	return "hex:" + hex.EncodeToString([]byte(id[:min(len(id), maxText/2)]))
}
