package pipeline

import (
	"time"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// Tracer makes a trace for each batch. The lanes of a pipeline share one. It never fails and waits
// for nobody: a trace that it cannot keep is dropped.
type Tracer interface {
	// Begin is called with each batch that was polled; polling began at since. The trace may read
	// the batch until its End and changes nothing of it.
	Begin(lane int, b *consumer.Batch, since time.Time) Trace
}

// Trace follows one batch. It is used by one goroutine.
type Trace interface {
	// Step is called when a step begins; the one before it is done.
	Step(name string)
	// Decided is called between claim and forward, for each record in the order of the batch.
	Decided(record int, j *dedup.Judgement, o Outcome)
	// Revised is called between forward and commit, for records that the clean topic refused, in
	// the order of the batch.
	Revised(record int, o Outcome)
	// Span is that of the batch; the zero value if it is not sent.
	Span() telemetry.Span
	// Spans are those of the records, where they are sent, in the order of the batch.
	Spans() []RecordSpan
	// End is called once, when the batch was committed or given back, or its session failed.
	End(e Ending)
}

// RecordSpan is the span of a record.
type RecordSpan struct {
	Record int // its index in the batch
	Span   telemetry.Span
}

// The steps of a batch. Their names are those of docs/tracing.md.
const (
	stepClaim   = "claim"
	stepForward = "forward"
	stepCommit  = "commit"
)

// Ending is how the work on a batch ended.
type Ending struct {
	Result string // as in kdedup_batches_total
	// why it was not committed: rebalance, undeliverable (a record that its topics refuse), or as
	// in kdedup_lane_failures_total
	Reason string
	Err    error // nil if it was committed
}

func endingOf(err error) Ending {
	switch {
	case err == nil:
		return Ending{Result: resultCommitted}
	case classify(err) == proceed:
		return Ending{resultAborted, givenBack(err), err}
	default:
		return Ending{resultFailed, reasonNames[reasonOf(err)], err}
	}
}

// givenBack is why a batch was given back in good order.
func givenBack(err error) string {
	if isUndeliverable(err) {
		return "undeliverable"
	}
	return "rebalance"
}

// tracer returns one that does nothing if there is no other.
func (o *Options) tracer() Tracer {
	if o.Tracer == nil {
		return noTracer{}
	}
	return o.Tracer
}

// beginTrace begins the trace of a batch. One that panics is a defect, and no reason to hold up
// records.
func (l *lane) beginTrace(b *consumer.Batch, since time.Time) (t Trace) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("a batch has no trace: please report it", "panic", p)
			t = noTrace{}
		}
	}()
	return l.tracer.Begin(l.number, b, since)
}

func (l *lane) endTrace(t Trace, e Ending) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("the trace of a batch is lost: please report it", "panic", p)
		}
	}()
	t.End(e)
}

// noTracer allocates nothing.
type noTracer struct{}

func (noTracer) Begin(int, *consumer.Batch, time.Time) Trace { return noTrace{} }

type noTrace struct{}

func (noTrace) Step(string)                            {}
func (noTrace) Decided(int, *dedup.Judgement, Outcome) {}
func (noTrace) Revised(int, Outcome)                   {}
func (noTrace) Span() telemetry.Span                   { return telemetry.Span{} }
func (noTrace) Spans() []RecordSpan                    { return nil }
func (noTrace) End(Ending)                             {}
