package pipeline

import (
	"fmt"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// Outcome is what became of a record. Every record that is committed has exactly one.
type Outcome uint8

const (
	Forwarded     Outcome = iota // to the clean topic, as the first of its ID
	Duplicate                    // not forwarded: a copy of an ID that another record owns
	Conflict                     // not forwarded: as Duplicate, with other content
	Replay                       // not forwarded: it was, before the group's offsets were set back
	PassedThrough                // to the clean topic without being the first: by mode or policy
	Dropped                      // not forwarded: it has no ID, and the policy says drop
	DeadLettered                 // to the dead-letter topic
)

var outcomeNames = [...]string{"forwarded", "duplicate", "conflict", "replay", "passed_through", "dropped", "dead_lettered"}

// String is the outcome in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

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
	parcel *forwarder.Parcel
	counts
}

// plan decides every record of a batch. It sends nothing.
func (l *lane) plan(b *consumer.Batch, judgements []dedup.Judgement, trace Trace) (*plan, error) {
	p := &plan{parcel: l.topics.NewParcel(len(b.Records))}
	for i, r := range b.Records {
		j := &judgements[i]
		outcome, err := l.policy.decide(p.parcel, r, j)
		if err != nil {
			return nil, err
		}
		p.add(l.metrics, r, j, outcome)
		trace.Decided(i, j, outcome)
	}
	return p, nil
}

// decide puts the record where the verdict and the policy want it.
func (p Policy) decide(to *forwarder.Parcel, r consumer.Record, j *dedup.Judgement) (Outcome, error) {
	action, outcome := p.action(j)
	switch action {
	case forward:
		return p.clean(to, r, j, outcome)
	case drop:
		if outcome == Duplicate || outcome == Conflict {
			to.Duplicate(r.Record, note(j))
		}
		return outcome, nil
	case deadLetter:
		return DeadLettered, to.DeadLetter(r.Record, p.reason(j))
	default:
		return 0, fmt.Errorf("%s[%d]@%d has no message ID (%s) and on_missing_id is fail: %w",
			r.Topic, r.Partition, r.Offset, j.Missing, ErrStop)
	}
}

// clean forwards the record, or dead-letters it if the clean topic does not admit its size.
func (p Policy) clean(to *forwarder.Parcel, r consumer.Record, j *dedup.Judgement, outcome Outcome) (Outcome, error) {
	fits := false
	if p.Mode == Annotate || j.Verdict == dedup.VerdictUnclaimed {
		fits = to.Marked(r.Record, note(j))
	} else {
		fits = to.Clean(r.Record)
	}
	if fits {
		return outcome, nil
	}
	return DeadLettered, to.DeadLetter(r.Record, "record_too_large")
}

func note(j *dedup.Judgement) forwarder.Note {
	n := forwarder.Note{Verdict: j.Verdict.String(), ClaimedAt: j.ClaimedAt}
	n.Owned = j.Verdict != dedup.VerdictMissing && j.Verdict != dedup.VerdictUnclaimed
	n.Owner.TopicID, n.Owner.Partition, n.Owner.Offset = j.Owner.TopicID, j.Owner.Partition, j.Owner.Offset
	return n
}
