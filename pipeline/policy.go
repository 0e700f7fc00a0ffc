package pipeline

import "github.com/kdedup/kdedup/dedup"

// Mode says what a pipeline does with its verdicts.
type Mode uint8

const (
	Enforce  Mode = iota // forward only first copies
	Annotate             // forward everything, with headers that tell the verdict
	Observe              // forward everything as it is, and count
)

// Choice is what a policy does with a record that is not simply the first or a copy.
type Choice uint8

const (
	Drop Choice = iota
	Forward
	DeadLetter
	Fail // end the pipeline
)

// Undeliverable is what becomes of a record that the clean topic does not take.
type Undeliverable uint8

const (
	BuryUndeliverable Undeliverable = iota // to the dead-letter topic
	DropUndeliverable
	StopAtUndeliverable // its partition is held
)

// Policy is the part of a topic's configuration that decides over verdicts.
type Policy struct {
	Mode        Mode
	OnMissingID Choice // Drop, Forward, DeadLetter or Fail
	OnConflict  Choice // Drop, Forward or DeadLetter
	OnReplay    Choice // Drop or Forward
	OnTombstone Choice // Drop, Forward or DeadLetter, where tombstones are told apart

	OnUndeliverable Undeliverable
}

type action uint8

const (
	forward action = iota
	drop
	deadLetter
	fail
)

// action maps a verdict to what is done and how it is counted.
func (p Policy) action(j *dedup.Judgement) (action, Outcome) {
	switch j.Verdict {
	case dedup.VerdictFirst, dedup.VerdictMine, dedup.VerdictInherited:
		return forward, Forwarded
	case dedup.VerdictUnclaimed, dedup.VerdictExempt:
		return forward, PassedThrough
	}
	if p.Mode != Enforce {
		return forward, PassedThrough
	}
	switch j.Verdict {
	case dedup.VerdictMissing:
		return choose(p.OnMissingID, Dropped, PassedThrough)
	case dedup.VerdictTombstone:
		return choose(p.OnTombstone, Dropped, PassedThrough)
	case dedup.VerdictReplay:
		return choose(p.OnReplay, Replay, Forwarded)
	case dedup.VerdictConflict:
		return choose(p.OnConflict, Conflict, Forwarded)
	default:
		return drop, Duplicate
	}
}

// Outcome is what becomes of a record with this verdict that the output admits; false if it ends
// the pipeline.
func (p Policy) Outcome(v dedup.Verdict) (outcome Outcome, goesOn bool) {
	action, outcome := p.action(&dedup.Judgement{Verdict: v})
	return outcome, action != fail
}

func choose(c Choice, dropped, forwarded Outcome) (action, Outcome) {
	switch c {
	case Drop:
		return drop, dropped
	case Forward:
		return forward, forwarded
	case DeadLetter:
		return deadLetter, DeadLettered
	default:
		return fail, dropped
	}
}

// reason is the dead-letter header of a record that the policy sends there.
func (p Policy) reason(j *dedup.Judgement) string {
	if j.Verdict == dedup.VerdictMissing {
		return "missing_id_" + j.Missing.String()
	}
	return j.Verdict.String()
}
