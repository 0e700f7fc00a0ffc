package pipeline

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// Outcome is what became of a record. Every record that is committed has exactly one.
type Outcome uint8

const (
	Forwarded Outcome = iota // to the clean topic, as the first of its ID
	Duplicate                // not forwarded: a copy of an ID that another record owns
	Conflict                 // not forwarded: as Duplicate, with other content
	Replay                   // not forwarded: it was, before the group's offsets were set back
	// to the clean topic without being the first: by mode or policy, or because it is exempt
	PassedThrough
	// not forwarded: it has no ID, is a tombstone, or the clean topic does not take it, and the
	// policy says drop
	Dropped
	DeadLettered // to the dead-letter topic
)

var outcomeNames = [...]string{"forwarded", "duplicate", "conflict", "replay", "passed_through",
	"dropped", "dead_lettered"}

// String is the outcome in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// sent reports whether the record went to the clean topic.
func (o Outcome) sent() bool { return o == Forwarded || o == PassedThrough }

// Outcomes lists every outcome, in the order in which they are shown.
func Outcomes() []Outcome {
	all := make([]Outcome, len(outcomeNames))
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// plan is what a batch sends and how its records are counted once that is committed.
type plan struct {
	outgoing   *forwarder.Outgoing
	judgements []dedup.Judgement
	became     []Outcome      // by record
	differs    map[int]string // in what conflicts differ from their owners, by record
	odds       odds
	counts
	refused refusals
}

// plan decides every record of a batch. It sends nothing.
func (l *lane) plan(
	b *consumer.Batch, judgements []dedup.Judgement, differs map[int]string, trace Trace,
) (p *plan, err error) {
	p = &plan{
		outgoing: l.topics.NewOutgoing(len(b.Records)), judgements: judgements,
		became: make([]Outcome, len(b.Records)), differs: differs,
	}
	i := 0
	defer dedup.Catch(&i, &err)
	for ; i < len(b.Records); i++ {
		r := b.Records[i]
		j, before := &judgements[i], p.outgoing.Len()
		outcome, refusal, err := l.decide(p.outgoing, b, i, noted{j, differs[i]})
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			p.refuse(*refusal, outcome)
		}
		// A record that has become another one's copy since, or its ID's owner, goes elsewhere now,
		// or there with another word: a dead letter says why it is one.
		if sent, ok := l.written[placeOf(r)]; ok && p.outgoing.Len() > before &&
			p.outgoing.Last() == sent {
			p.outgoing.Truncate(before)
		}
		p.became[i] = outcome
		p.add(l.metrics, r, j, outcome)
		p.odds.note(r, noted{j, differs[i]}, outcome)
		trace.Decided(i, j, outcome)
	}
	return p, nil
}

// revise counts the batch again after some of its records were refused by the clean topic.
func (p *plan) revise(m *Metrics, b *consumer.Batch, trace Trace, found map[*kgo.Record]refused) {
	p.counts = counts{}
	for i, r := range b.Records {
		if f, ok := found[r.Record]; ok {
			p.became[i] = f.outcome
			trace.Revised(i, f.outcome)
		}
		p.add(m, r, &p.judgements[i], p.became[i])
	}
}

// decide puts the record where the verdict and the policy want it. One that the clean topic is
// known to refuse comes with the refusal.
func (l *lane) decide(
	to *forwarder.Outgoing, b *consumer.Batch, i int, j noted,
) (Outcome, *forwarder.Refusal, error) {
	r := b.Records[i]
	if skip, skipped := b.Skipped(i); skipped {
		refusal := &forwarder.Refusal{Record: r.Record, Reason: forwarder.ReasonSkipped}
		if skip.DeadLetter {
			return DeadLettered, refusal, to.DeadLetter(r.Record, forwarder.ReasonSkipped,
				forwarder.Note{})
		}
		return Dropped, refusal, nil
	}
	action, outcome := l.policy.action(j.Judgement)
	switch action {
	case forward:
		reason := l.refused[placeOf(r)]
		if !forwarder.Keeps(r.Timestamp) {
			reason = forwarder.ReasonTimestamp
		}
		if reason == "" && !l.policy.clean(to, r, j) {
			reason = forwarder.ReasonTooLarge
		}
		if reason == "" {
			return outcome, nil, nil
		}
		refusal := &forwarder.Refusal{Record: r.Record, Reason: reason}
		outcome, err := l.policy.undeliverable(*refusal)
		if err == nil && outcome == DeadLettered {
			err = to.DeadLetter(r.Record, reason, forwarder.Note{})
		}
		return outcome, refusal, err
	case drop:
		if outcome == Duplicate || outcome == Conflict {
			to.Duplicate(r.Record, j.note())
		}
		return outcome, nil, nil
	case deadLetter:
		return DeadLettered, nil, to.DeadLetter(r.Record, l.policy.reason(j.Judgement), j.note())
	default:
		return 0, nil, fmt.Errorf("%s[%d]@%d has no message ID (%s) and on_missing_id is fail: %w",
			r.Topic, r.Partition, r.Offset, j.Missing, ErrStop)
	}
}

// clean forwards the record. It reports false if the clean topic does not admit its size.
func (p Policy) clean(to *forwarder.Outgoing, r consumer.Record, j noted) bool {
	if p.Mode == Annotate && j.Verdict != dedup.VerdictExempt ||
		j.Verdict == dedup.VerdictUnclaimed {
		return to.Marked(r.Record, j.note())
	}
	return to.Clean(r.Record)
}

// errStopAt is why a record is not treated.
var errStopAt = errors.New("on_undeliverable is stop")

// undeliverable is what becomes of a record that the clean topic does not take.
func (p Policy) undeliverable(r forwarder.Refusal) (Outcome, error) {
	switch p.OnUndeliverable {
	case DropUndeliverable:
		return Dropped, nil
	case StopAtUndeliverable:
		return 0, &forwarder.Stuck{Record: r.Record, Reason: r.Reason, Err: errStopAt}
	default:
		return DeadLettered, nil
	}
}

// placeOf is where a record stands, without the ID of the topic, which brokers may tell now and
// then: within a session the input is the same.
func placeOf(r consumer.Record) consumer.Place {
	return consumer.Place{Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch}
}

// noted is a judgement, and in what the record differs from its owner if it is a conflict.
type noted struct {
	*dedup.Judgement
	differs string
}

func (j noted) note() forwarder.Note {
	n := forwarder.Note{Verdict: j.Verdict.String(), ClaimedAt: j.ClaimedAt, Differs: j.differs}
	n.Owned = j.Owned()
	n.Owner.TopicID, n.Owner.Partition, n.Owner.Offset = j.Owner.TopicID, j.Owner.Partition,
		j.Owner.Offset
	return n
}
