package pipeline

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// refusals are how many records of a batch the clean topic does not take, by reason.
type refusals [len(refusalReasons)]int

// refusalReasons are the labels, in the order of forwarder.Reasons.
var refusalReasons = [...]string{
	forwarder.ReasonTooLarge, forwarder.ReasonTimestamp, forwarder.ReasonNullKey,
	forwarder.ReasonInvalid,
	forwarder.ReasonSkipped,
}

// refuse notes a record that the clean topic does not take, and what becomes of it.
func (p *plan) refuse(refusal forwarder.Refusal, became Outcome) {
	p.odds.refuse(refusal, became)
	for i, reason := range refusalReasons {
		if reason == refusal.Reason {
			p.refused[i]++
		}
	}
}

// refused is what a lane has found out about a record.
type refused struct {
	outcome Outcome
	reason  string
}

// send sends the plan. Records that the clean topic turns out to refuse are treated by the policy,
// and counted so.
func (l *lane) send(work context.Context, b *consumer.Batch, p *plan, trace Trace) error {
	found := make(map[*kgo.Record]refused)
	err := p.outgoing.Send(work, l.session, forwarder.Isolation{
		Until: l.session.Until(),
		Refused: func(refusal forwarder.Refusal) (deadLetter bool, err error) {
			outcome, err := l.policy.undeliverable(refusal)
			if err != nil {
				return false, err
			}
			p.refuse(refusal, outcome)
			found[refusal.Record] = refused{outcome, refusal.Reason}
			return outcome == DeadLettered, nil
		},
	})
	switch {
	case err != nil:
		l.remember(b, found)
		if stuck := (*forwarder.Stuck)(nil); errors.As(err, &stuck) && !l.session.Undoes() {
			l.keep(b, p.outgoing.Written())
		}
	case len(found) > 0:
		p.revise(l.metrics, b, trace, found)
	}
	return err
}

// remember keeps what was found in a batch that is given back: the search goes on from there when
// it comes again.
func (l *lane) remember(b *consumer.Batch, found map[*kgo.Record]refused) {
	if len(found) == 0 {
		return
	}
	if l.refused == nil {
		l.refused = make(map[consumer.Place]string)
	}
	for _, r := range b.Records {
		if f, ok := found[r.Record]; ok {
			l.refused[placeOf(r)] = f.reason
		}
	}
}

// forget is called when a batch is committed.
func (l *lane) forget(b *consumer.Batch) {
	if len(l.refused)+len(l.written) == 0 {
		return
	}
	for _, r := range b.Records {
		delete(l.refused, placeOf(r))
		delete(l.written, placeOf(r))
	}
}

// keep notes what is acknowledged of a batch that is given back, and is not undone with it: it is
// not sent again.
func (l *lane) keep(b *consumer.Batch, written map[*kgo.Record]forwarder.Sent) {
	if l.written == nil {
		l.written = make(map[consumer.Place]forwarder.Sent)
	}
	for _, r := range b.Records {
		if sent, ok := written[r.Record]; ok {
			l.written[placeOf(r)] = sent
		}
	}
}

// reasonPanic is that of a record that made kdedup panic.
const reasonPanic = "panic"

// giveBack returns the batch. If a record of it can be delivered nowhere, its partition is held
// there.
func (l *lane) giveBack(work context.Context, b *consumer.Batch, why error) error {
	if t := (*dedup.Tripped)(nil); errors.As(why, &t) {
		r := b.Records[t.Message].Record
		l.log.Error("a record made kdedup panic: please report it, with the stack",
			"partition", r.Partition, "offset", r.Offset, "panic", t.Panic,
			"stack", string(t.Stack))
		why = &forwarder.Stuck{Record: r, Reason: reasonPanic, Err: why}
	}
	if stuck := (*forwarder.Stuck)(nil); errors.As(why, &stuck) {
		l.session.Hold(stuck.Record.Partition, stuck.Record.Offset, stuck.Why())
	}
	return l.session.Abort(work, b, why)
}
