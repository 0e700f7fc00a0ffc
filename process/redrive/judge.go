package redrive

import (
	"context"
	"strings"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/dryrun"
)

// claimer claims only for what is then sent to the clean topic.
func (o *Options) claimer() dedup.Claimer {
	if o.DryRun || o.Into == Input {
		return dryrun.Claimer{Store: o.Store}
	}
	return o.Store
}

// judge returns the letters that are to be sent, and counts the others.
func (r *run) judge(ctx context.Context, letters []*letter) (send []*letter, err error) {
	messages := make([]dedup.Message, len(letters))
	for i, l := range letters {
		messages[i] = dedup.Message{Record: l.Record, Owner: l.place}
	}
	judgements, err := r.judges.Judge(ctx, messages)
	if err != nil {
		return nil, err
	}
	contents := make(map[mark]bool)
	for i, l := range letters {
		r.recall(l, &judgements[i])
		refusal := r.decide(l, &judgements[i])
		if refusal == "" && l.content != (mark{}) {
			if contents[l.content] {
				refusal = Duplicate
			}
			contents[l.content] = true
		}
		if refusal != "" {
			r.report.refuse(refusal, l.String())
			continue
		}
		send = append(send, l)
	}
	return send, nil
}

// recall makes a letter the copy of one that this redrive has sent and nobody has claimed for yet:
// the pipeline will, or it is a dry run.
func (r *run) recall(l *letter, j *dedup.Judgement) {
	sent, known := r.sent[l.id]
	if !known || j.Verdict != dedup.VerdictFirst {
		return
	}
	j.Owner = dedup.Coordinates{Partition: -1, Offset: -1}
	if j.Verdict = dedup.VerdictConflict; sent.Matches(r.fingerprints.Of(l.Record)) {
		j.Verdict = dedup.VerdictDuplicate
	}
}

// remember is for recall.
func (r *run) remember(l *letter) {
	if l.missing == dedup.NotMissing && (r.Into == Input || r.DryRun) {
		r.sent[dedup.ID(strings.Clone(string(l.id)))] = r.fingerprints.Of(l.Record)
	}
}

// decide tells why a letter is not sent, or nothing.
func (r *run) decide(l *letter, j *dedup.Judgement) (refusal string) {
	switch {
	case j.Own() && j.Owner.TopicID != l.place.TopicID:
		// of a record of the input with the same numbers, by a broker that told no topic ID
		return Duplicate
	case r.Into == Input && !j.Own() && r.Passes(j.Verdict):
		return ""
	}
	switch j.Verdict {
	case dedup.VerdictMine: // by an attempt that went to the clean topic, and did not end
		l.release = r.Into == Input
	case dedup.VerdictMissing:
		if r.Passes(j.Verdict) {
			return ""
		}
		return MissingID
	case dedup.VerdictTombstone:
		if r.Into == Clean {
			return ""
		}
		return Tombstone
	case dedup.VerdictDuplicate, dedup.VerdictConflict:
		return r.decideCopy(l, j)
	}
	return ""
}

func (r *run) decideCopy(l *letter, j *dedup.Judgement) (refusal string) {
	switch {
	case r.bySource(l, j) && !r.Handled(j.Owner, j.ClaimedAt):
		return NotCommitted
	case r.bySource(l, j):
		l.release = r.Into == Input
		return ""
	case j.Verdict == dedup.VerdictDuplicate:
		return Duplicate
	case r.Into == Input || !r.Conflicts:
		return Conflict
	}
	l.content = contentMark(r.Scope, l.id, r.fingerprints.Of(l.Record))
	if r.marks.within(l.content, r.Scope.TTL) {
		return Duplicate
	}
	return ""
}

// bySource reports whether the claim is the one that the letter's record made before no topic took
// it. A record that had no ID then, and owns one now, was read again since, and forwarded.
func (r *run) bySource(l *letter, j *dedup.Judgement) bool {
	source := dedup.Coordinates{TopicID: r.InputID, Partition: l.Record.Partition,
		Offset: l.Record.Offset, LeaderEpoch: j.Owner.LeaderEpoch} // the letter tells no epoch
	return l.undeliverable() && j.Verdict == dedup.VerdictDuplicate && j.Owner.Same(source)
}
