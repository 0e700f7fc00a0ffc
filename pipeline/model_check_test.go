package pipeline

import (
	"errors"
	"slices"

	"github.com/kdedup/kdedup/consumer"
)

// settle is called when the offsets of a batch have become final, and with exactly_once its records
// with them. What became of each record is compared with what the truth about the claims demands.
func (w *modelWorld) settle(a *modelAttempt) {
	if a.settled {
		w.failf("%v is committed twice", a)
	}
	a.settled = true
	w.saw(sightCommitted)
	w.assess(a)
	for i, s := range a.sources {
		outcome := a.became[i]
		w.look(a, i, outcome)
		a.finish(i)
		if e := a.answers[s.id]; e != nil && (outcome == Duplicate || outcome == Conflict) {
			truth := w.claims[s.id]
			truth.dropped = max(truth.dropped, e.number+1)
		}
		if s.commits++; s.commits > 1+w.input[s.record.Partition].rewinds {
			w.failf("%v is committed %d times, after %d rewinds", s, s.commits, w.input[s.record.Partition].rewinds)
		}
	}
	for _, span := range a.batch.Spans {
		w.checkSpan(a, span)
	}
}

// assess is called when a batch is done: with exactly_once when it is committed, with at_least_once when its fences are
// written, after which the lane counts it.
func (w *modelWorld) assess(a *modelAttempt) {
	if a.became != nil {
		return
	}
	for i := range a.sources {
		outcome := w.outcome(a, i)
		a.became = append(a.became, outcome)
		a.outcomes[outcome]++
	}
}

// look notes the situation that a record was in.
func (w *modelWorld) look(a *modelAttempt, i int, o Outcome) {
	s := a.sources[i]
	e := a.answers[s.id]
	switch {
	case o == Replay:
		w.saw(sightReplay)
	case s.id != "" && e == nil:
		w.saw(sightUnclaimed)
	case e != nil && e.owner == s:
		if e.sent != a {
			w.saw(sightRepeated)
		}
		if e.first != a {
			w.saw(sightMine)
		}
		if slices.ContainsFunc(a.sources[:i], func(o *modelSource) bool { return o.id == s.id }) {
			w.saw(sightFollower)
		}
	}
}

// checkSpan: a commit says that everything below is done.
func (w *modelWorld) checkSpan(a *modelAttempt, span consumer.Span) {
	p := w.input[span.Partition]
	for p.done < len(p.sources) && p.sources[p.done].commits > 0 {
		p.done++
	}
	if p.done < len(p.sources) && p.sources[p.done].record.Offset < span.Next {
		w.failf("%v commits offset %d, but %v was never handled", a, span.Next, p.sources[p.done])
	}
}

// outcome is what became of a record, if the truth allows it.
func (w *modelWorld) outcome(a *modelAttempt, i int) Outcome {
	s := a.sources[i]
	allowed := w.allowed(a, s)
	for _, o := range allowed {
		o, to := w.destination(o, s)
		if a.wrote[i] == to {
			return o
		}
	}
	must := w.destinations(allowed, s)
	switch {
	case must&(toClean|toDead) != 0 && a.wrote[i]&(toClean|toDead) == 0:
		w.failf("lost: %v is committed by %v and was not forwarded", s, a)
	case must == 0 && a.wrote[i]&toClean != 0:
		w.failf("doubled: %v is forwarded by %v although it or a copy was before", s, a)
	}
	w.failf("%v is committed by %v with destinations %03b, allowed are the outcomes %v", s, a, a.wrote[i], allowed)
	return 0
}

func (w *modelWorld) destinations(allowed []Outcome, s *modelSource) (all destination) {
	for _, o := range allowed {
		_, to := w.destination(o, s)
		all |= to
	}
	return all
}

// destination is where a record goes, and how it counts when it is too large for that.
func (w *modelWorld) destination(o Outcome, s *modelSource) (Outcome, destination) {
	switch {
	case (o == Forwarded || o == PassedThrough) && !s.oversize:
		return o, toClean
	case o == Forwarded, o == PassedThrough, o == DeadLettered:
		return DeadLettered, toDead
	case (o == Duplicate || o == Conflict) && w.mix.duplicatesTopic:
		return o, toDuplicates
	}
	return o, 0
}

// allowed are the outcomes that a record of a committed batch may have.
func (w *modelWorld) allowed(a *modelAttempt, s *modelSource) []Outcome {
	policy, e := w.mix.policy, a.answers[s.id]
	switch {
	case s.id == "" && policy.Mode == Enforce:
		byPolicy := map[Choice]Outcome{Drop: Dropped, Forward: PassedThrough, DeadLetter: DeadLettered}
		return []Outcome{byPolicy[policy.OnMissingID]}
	case s.id == "", e == nil:
		return []Outcome{PassedThrough}
	case e.owner == s:
		return w.allowedForOwner(a, e)
	case policy.Mode != Enforce:
		return []Outcome{PassedThrough}
	case e.owner.sameContent(s):
		return []Outcome{Duplicate}
	}
	byPolicy := map[Choice]Outcome{Drop: Conflict, Forward: Forwarded, DeadLetter: DeadLettered}
	return []Outcome{byPolicy[policy.OnConflict]}
}

// allowedForOwner: the owner of an ID is forwarded, unless it was. With at_least_once a forward that
// was not followed by a fence in time may be repeated, or may be recognised.
func (w *modelWorld) allowedForOwner(a *modelAttempt, e *modelEpisode) []Outcome {
	again := Replay
	switch {
	case w.mix.policy.Mode != Enforce:
		return []Outcome{Forwarded, PassedThrough}
	case w.mix.policy.OnReplay == Forward:
		again = Forwarded
	}
	switch {
	case e.final != nil && e.final != a && !a.zombie:
		return []Outcome{again}
	case a.zombie, e.owner.passed, !w.mix.transactional && e.sent != nil && e.sent != a:
		return []Outcome{again, Forwarded}
	}
	return []Outcome{Forwarded}
}

// checkStop: only a record without an ID ends a lane for good.
func (w *modelWorld) checkStop(err error) {
	if w.mix.policy.OnMissingID != Fail || !errors.Is(err, ErrStop) {
		w.failf("a lane stopped: %v", err)
	}
	w.saw(sightStopped)
}

// tooLarge tells that the record is on the dead-letter topic instead of the clean one.
func (e *modelEntry) tooLarge() bool {
	return string(e.record.Headers[len(e.source.record.Headers)].Value) == "record_too_large"
}

// forwardedIDs counts the visible records of each ID that stand for its owner.
func (w *modelWorld) forwardedIDs() map[string]int {
	found := make(map[string]int)
	for _, topic := range []string{topicClean, topicDead} {
		for _, e := range slices.Concat(w.topics[topic]...) {
			if e.visible() && (topic == topicClean || e.tooLarge()) {
				found[string(e.source.id)]++
			}
		}
	}
	return found
}
