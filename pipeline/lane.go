package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// Session is one membership in the consumer group, with the producer that belongs to it. It is used
// by one goroutine, in the order Poll, Begin, Produce…, Flush, Commit; Abort may come at any time
// after Poll. An error that wraps consumer.ErrAborted and consumer.ErrRevoked means that the batch
// was given back and polling may go on; after any other error the session must be closed.
type Session interface {
	// Poll waits for the next batch; nil when ctx ends.
	Poll(ctx context.Context) (*consumer.Batch, error)
	// Begin comes after the claims, so that they take none of a transaction's time.
	Begin(ctx context.Context, b *consumer.Batch) error
	forwarder.Producer
	// Until tells when what is produced after Begin should be complete, since the transaction may
	// time out later. The zero value says that there is no such time.
	Until() time.Time
	// Hold keeps a record, and what is behind it on its partition, out of the next batches, for a
	// pause that grows. It is called before the batch with the record is given back.
	Hold(partition int32, offset int64, reason string)
	// Undoes reports whether what was produced for a batch that is given back is never visible.
	Undoes() bool
	// Commit makes everything that was produced since Begin final, and then the batch's offsets.
	// That these were not taken may be told by the next call; then they are read again, as what was
	// handled.
	Commit(ctx context.Context, b *consumer.Batch) error
	// Abort gives the batch back and returns why, wrapped.
	Abort(ctx context.Context, b *consumer.Batch, why error) error
	// Joined reports whether the group has accepted the member.
	Joined() bool
	// Close leaves the group.
	Close()
}

// Judge decides for each message whether it is the first of its ID; see dedup.Deduper.
type Judge interface {
	Judge(ctx context.Context, messages []dedup.Message) ([]dedup.Judgement, error)
}

// lane runs the loop on one session.
type lane struct {
	number  int
	session Session
	judge   Judge
	policy  Policy
	topics  *forwarder.Topics
	metrics *Metrics
	tracer  Tracer
	log     *slog.Logger

	identify func(context.Context, []dedup.Judgement) error // of the supervisor
	odd      *oddLog                                        // of the supervisor
	dropped  *droppedCopies                                 // of the pipeline

	conflicts comparing

	// records that the clean topic refused, and why; their batch was given back
	refused map[consumer.Place]string
	// what is acknowledged of batches that were given back, and not undone with them
	written map[consumer.Place]forwarder.Sent
}

// turn takes one batch all the way. Polling ends with the first context, work with the second.
func (l *lane) turn(polling, work context.Context) (err error) {
	start := time.Now()
	batch, err := l.session.Poll(polling)
	if batch == nil || err != nil {
		return err
	}
	l.metrics.inFlight.Set(float64(len(batch.Records)))
	trace := l.beginTrace(batch, start)
	defer func() {
		ending := endingOf(err)
		l.metrics.batchEnded(ending)
		l.endTrace(trace, ending)
	}()

	trace.Step(stepClaim)
	judgements, err := l.claim(work, batch)
	if err != nil {
		return l.giveBack(work, batch, err)
	}
	if err := l.identify(work, judgements); err != nil {
		return l.session.Abort(work, batch, err)
	}
	plan, err := l.plan(batch, judgements, l.conflicts.differences(work, batch, judgements), trace)
	if err != nil {
		return l.giveBack(work, batch, err)
	}
	trace.Step(stepForward)
	if err := l.forward(work, batch, plan, trace); err != nil {
		return l.giveBack(work, batch, err)
	}
	trace.Step(stepCommit)
	if err := l.commit(work, batch, trace); err != nil {
		return err
	}
	l.metrics.count(plan, batch, trace)
	l.forget(batch)
	l.dropped.add(batch, plan, time.Now())
	l.odd.add(&plan.odds, l.log, time.Now())
	if plan.late > 0 {
		l.log.Warn("records were forwarded by claims whose life is half over; copies that come "+
			"after their end pass: "+
			"keep the ttl above the longest outage", "records", plan.late, "ttl", l.metrics.ttl)
	}
	return nil
}

// claim asks the store about the batch, until it answers or the batch is taken away.
func (l *lane) claim(work context.Context, b *consumer.Batch) ([]dedup.Judgement, error) {
	ctx, cancel := b.Context(work)
	defer cancel()
	messages := make([]dedup.Message, len(b.Records))
	for i, r := range b.Records {
		messages[i] = dedup.Message{
			Record: r.Record, Owner: dedup.CoordinatesOf(r.TopicID, r.Record), Settled: r.Settled,
		}
	}
	judgements, err := l.judge.Judge(ctx, messages)
	if err != nil {
		return nil, err
	}
	inherit(b, judgements)
	for i := range judgements {
		if j := &judgements[i]; j.Own() {
			b.Own(i, j.ClaimedAt)
		}
	}
	return judgements, nil
}

// inherit lets a copy stand for the owner of its ID where nobody will ever forward that one: the
// first copy that the owner's partition delivers. Behind it the fence is past the owner, whose
// other copies are copies as before.
func inherit(b *consumer.Batch, judgements []dedup.Judgement) {
	var heirs map[dedup.Coordinates]bool // owners that have one
	for i := range judgements {
		j := &judgements[i]
		if !j.Copy() || heirs[j.Owner] || !b.Gone(i, consumer.Place(j.Owner), j.ClaimedAt) {
			continue
		}
		if heirs == nil {
			heirs = make(map[dedup.Coordinates]bool)
		}
		heirs[j.Owner] = true
		b.Inherit(i, consumer.Place(j.Owner))
		j.Verdict = dedup.VerdictInherited
	}
}

// forward returns when every record of the plan is acknowledged.
func (l *lane) forward(work context.Context, b *consumer.Batch, p *plan, trace Trace) error {
	start := time.Now()
	l.metrics.output.Begin()
	defer l.metrics.output.End()
	if err := l.session.Begin(work, b); err != nil {
		return err
	}
	if err := l.send(work, b, p, trace); err != nil {
		return err
	}
	observe(l.metrics.forwardSeconds, start, trace)
	return nil
}

func (l *lane) commit(work context.Context, b *consumer.Batch, trace Trace) error {
	start := time.Now()
	l.metrics.output.Begin()
	defer l.metrics.output.End()
	if err := l.session.Commit(work, b); err != nil {
		return err
	}
	observe(l.metrics.commitSeconds, start, trace)
	return nil
}

// observe takes the trace of the batch for an example of how long a step takes.
func observe(step prometheus.Observer, start time.Time, t Trace) {
	telemetry.ObserveIn(step, time.Since(start).Seconds(), t.Span())
}
