package pipeline

import (
	"time"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
)

// Tracer makes a trace for each batch. The lanes of a pipeline share one. It never fails and waits for
// nobody: a trace that it cannot keep is dropped.
type Tracer interface {
	// Begin is called with each batch that was polled; polling began at since. The trace may read the
	// batch until its End and changes nothing of it.
	Begin(lane int, b *consumer.Batch, since time.Time) Trace
}

// Trace follows one batch. It is used by one goroutine.
type Trace interface {
	// Step is called when a step begins; the one before it is done.
	Step(name string)
	// Decided is called between claim and forward, for each record in the order of the batch.
	Decided(record int, j *dedup.Judgement, o Outcome)
	// End is called once, when the batch was committed or given back, or its session failed.
	End(e Ending)
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
	Reason string // why it was not committed: rebalance, or as in kdedup_lane_failures_total
	Err    error  // nil if it was committed
}

func endingOf(err error) Ending {
	switch {
	case err == nil:
		return Ending{Result: resultCommitted}
	case classify(err) == proceed:
		return Ending{resultAborted, "rebalance", err}
	default:
		return Ending{resultFailed, reasonNames[reasonOf(err)], err}
	}
}

// tracer returns one that does nothing if there is no other.
func (o *Options) tracer() Tracer {
	if o.Tracer == nil {
		return noTracer{}
	}
	return o.Tracer
}

// noTracer allocates nothing.
type noTracer struct{}

func (noTracer) Begin(int, *consumer.Batch, time.Time) Trace { return noTrace{} }

type noTrace struct{}

func (noTrace) Step(string)                            {}
func (noTrace) Decided(int, *dedup.Judgement, Outcome) {}
func (noTrace) End(Ending)                             {}
