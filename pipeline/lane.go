package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/crashpoint"
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
	// Commit makes everything that was produced since Begin final, and then the batch's offsets. That these were
	// not taken may be told by the next call; then they are read again, as what was handled.
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
}

// turn takes one batch all the way. Polling ends with the first context, work with the second.
func (l *lane) turn(polling, work context.Context) (err error) {
	start := time.Now()
	batch, err := l.session.Poll(polling)
	if batch == nil || err != nil {
		return err
	}
	l.metrics.inFlight.Set(float64(len(batch.Records)))
	trace := l.tracer.Begin(l.number, batch, start)
	defer func() {
		ending := endingOf(err)
		l.metrics.batchEnded(ending)
		trace.End(ending)
	}()

	crashpoint.At("batch-polled")
	trace.Step(stepClaim)
	judgements, err := l.claim(work, batch)
	if err != nil {
		return l.session.Abort(work, batch, err)
	}
	crashpoint.At("batch-claimed")
	plan, err := l.plan(batch, judgements, trace)
	if err != nil {
		return l.session.Abort(work, batch, err)
	}
	trace.Step(stepForward)
	if err := l.forward(work, batch, plan); err != nil {
		return l.session.Abort(work, batch, err)
	}
	trace.Step(stepCommit)
	if err := l.commit(work, batch); err != nil {
		return err
	}
	crashpoint.At("batch-committed")
	l.metrics.count(plan)
	return nil
}

// claim asks the store about the batch, until it answers or the batch is taken away.
func (l *lane) claim(work context.Context, b *consumer.Batch) ([]dedup.Judgement, error) {
	ctx, cancel := b.Context(work)
	defer cancel()
	messages := make([]dedup.Message, len(b.Records))
	for i, r := range b.Records {
		messages[i] = dedup.Message{
			Record: r.Record,
			Owner: dedup.Coordinates{
				TopicID: r.TopicID, Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch,
			},
			Settled: r.Settled,
		}
	}
	judgements, err := l.judge.Judge(ctx, messages)
	for i := range judgements {
		if j := &judgements[i]; j.Own() {
			b.Own(i, j.ClaimedAt)
		}
	}
	return judgements, err
}

// forward returns when every record of the plan is acknowledged.
func (l *lane) forward(work context.Context, b *consumer.Batch, p *plan) error {
	start := time.Now()
	l.metrics.output.Begin()
	defer l.metrics.output.End()
	crashpoint.At("batch-planned")
	if err := l.session.Begin(work, b); err != nil {
		return err
	}
	crashpoint.At("batch-begun")
	if err := p.parcel.Send(work, l.session); err != nil {
		return err
	}
	crashpoint.At("batch-forwarded")
	l.metrics.forwardSeconds.Observe(time.Since(start).Seconds())
	return nil
}

func (l *lane) commit(work context.Context, b *consumer.Batch) error {
	start := time.Now()
	l.metrics.output.Begin()
	defer l.metrics.output.End()
	if err := l.session.Commit(work, b); err != nil {
		return err
	}
	l.metrics.commitSeconds.Observe(time.Since(start).Seconds())
	return nil
}
