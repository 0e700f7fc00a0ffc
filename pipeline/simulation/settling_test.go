//go:build !race

package simulation

import (
	"cmp"
	"errors"
	"slices"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/pipeline"
)

// commitAttempt is called when the offsets of a batch have become final, and with exactly_once its
// records with them. What became of each record is compared with what the truth about the claims
// demands.
func (w *world) commitAttempt(a *attempt) {
	if a == nil {
		return
	}
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
		if e := a.answers[s.id]; e != nil &&
			(outcome == pipeline.Duplicate || outcome == pipeline.Conflict) {
			truth := w.claims[s.id]
			truth.dropped = max(truth.dropped, e.number+1)
		}
		s.handled = true
		s.unclaimed = s.unclaimed || s.id != "" && a.answers[s.id] == nil
		if s.commits++; s.commits > 1+w.input[s.record.Partition].rewinds {
			w.failf("%v is committed %d times, after %d rewinds", s, s.commits,
				w.input[s.record.Partition].rewinds)
		}
	}
	for _, span := range a.batch.Spans {
		w.checkSpan(a, span)
	}
}

// assess is called when a batch is done: with exactly_once when it is committed, with at_least_once
// when its fences are written, after which the lane counts it.
func (w *world) assess(a *attempt) {
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
func (w *world) look(a *attempt, i int, o pipeline.Outcome) {
	s := a.sources[i]
	e := a.answers[s.id]
	switch {
	case e != nil && e.owner != s && e.owner.gone &&
		e.owner.record.Partition == s.record.Partition && o == pipeline.Forwarded:
		w.saw(sightInherited)
	case o == pipeline.Replay:
		w.saw(sightReplay)
	case s.kind == exempt:
		w.saw(sightExempt)
	case s.kind == tombstone:
		w.saw(sightTombstone)
	case s.id != "" && e == nil:
		w.saw(sightUnclaimed)
	case e != nil && e.owner == s:
		if e.sent != a {
			w.saw(sightRepeated)
		}
		if e.first != a {
			w.saw(sightMine)
		}
		if slices.ContainsFunc(a.sources[:i], func(o *source) bool { return o.id == s.id }) {
			w.saw(sightFollower)
		}
	}
}

// checkSpan: a commit says that everything below is done.
func (w *world) checkSpan(a *attempt, span consumer.Span) {
	p := w.input[span.Partition]
	for p.done < len(p.sources) && (p.sources[p.done].handled || p.sources[p.done].gone) {
		p.done++
	}
	if p.done == len(p.sources) {
		return
	}
	// A span of a log that was cut since says nothing of what took the place of its records.
	if r := p.sources[p.done].record; r.Offset < span.Next && r.LeaderEpoch <= span.LeaderEpoch {
		w.failf("%v commits offset %d, but %v was never handled", a, span.Next, p.sources[p.done])
	}
}

// outcome is what became of a record, if the truth allows it.
func (w *world) outcome(a *attempt, i int) pipeline.Outcome {
	s := a.sources[i]
	allowed := w.allowed(a, s)
	if skip, skipped := a.batch.Skipped(i); skipped {
		if !s.skipped {
			w.failf("%v was skipped, and nobody said so", s)
		}
		w.saw(sightSkipped)
		allowed = []pipeline.Outcome{pipeline.Dropped}
		if skip.DeadLetter {
			allowed[0] = pipeline.DeadLettered
		}
	}
	goesTo := func(at destination) int {
		return slices.IndexFunc(allowed, func(o pipeline.Outcome) bool {
			_, to := w.destination(o, s)
			return at == to
		})
	}
	there, here := goesTo(a.written(i)), goesTo(a.wrote[i])
	if there >= 0 && here >= 0 && there != here {
		// Its session has sent it before, and what others did meanwhile may decide.
		other, _ := w.destination(allowed[here], s)
		a.either[other]++
	}
	if at := cmp.Or(there+1, here+1); at > 0 {
		o, _ := w.destination(allowed[at-1], s)
		return o
	}
	must := w.destinations(allowed, s)
	switch {
	case must&(toClean|toDead) != 0 && a.written(i)&(toClean|toDead) == 0:
		w.failf("lost: %v is committed by %v and was not forwarded", s, a)
	case must == 0 && a.wrote[i]&toClean != 0:
		w.failf("doubled: %v is forwarded by %v although it or a copy was before", s, a)
	}
	w.failf("%v is committed by %v with destinations %03b, allowed are the outcomes %v", s, a,
		a.wrote[i], allowed)
	return 0
}

func (w *world) destinations(allowed []pipeline.Outcome, s *source) (all destination) {
	for _, o := range allowed {
		_, to := w.destination(o, s)
		all |= to
	}
	return all
}

// destination is where a record goes, and how it counts when it is too large for that.
func (w *world) destination(o pipeline.Outcome, s *source) (pipeline.Outcome, destination) {
	switch {
	case (o == pipeline.Forwarded || o == pipeline.PassedThrough) && !s.undeliverable():
		return o, toClean
	case (o == pipeline.Forwarded || o == pipeline.PassedThrough) &&
		w.mix.policy.OnUndeliverable == pipeline.DropUndeliverable:
		return pipeline.Dropped, 0
	case o == pipeline.Forwarded, o == pipeline.PassedThrough, o == pipeline.DeadLettered:
		return pipeline.DeadLettered, toDead
	case (o == pipeline.Duplicate || o == pipeline.Conflict) && w.mix.duplicatesTopic && !s.invalid:
		return o, toDuplicates
	}
	return o, 0
}

// drops tells that the record may be dropped: it is undeliverable, or an operator said so.
func (w *world) drops(s *source) bool {
	return s.skipped || s.undeliverable() &&
		w.mix.policy.OnUndeliverable == pipeline.DropUndeliverable
}

// allowed are the outcomes that a record of a committed batch may have.
func (w *world) allowed(a *attempt, s *source) []pipeline.Outcome {
	policy, e := w.mix.policy, a.answers[s.id]
	byPolicy := map[pipeline.Choice]pipeline.Outcome{pipeline.Drop: pipeline.Dropped,
		pipeline.Forward: pipeline.PassedThrough, pipeline.DeadLetter: pipeline.DeadLettered}
	switch {
	case s.kind == exempt:
		return []pipeline.Outcome{pipeline.PassedThrough}
	case s.kind == tombstone && policy.Mode == pipeline.Enforce:
		return []pipeline.Outcome{byPolicy[policy.OnTombstone]}
	case s.id == "" && policy.Mode == pipeline.Enforce:
		return []pipeline.Outcome{byPolicy[policy.OnMissingID]}
	case s.id == "", e == nil:
		return []pipeline.Outcome{pipeline.PassedThrough}
	case e.owner == s:
		return w.allowedForOwner(a, e)
	case e.owner.record.Partition != s.record.Partition:
	case e.owner.gone && (e.final == nil || e.final == a || a.zombie || e.owner.lost()):
		// It stands for the owner, if that was not delivered in this batch. Whether it must, the
		// end of the run tells.
		return append(w.allowedForCopy(e, s), pipeline.Forwarded)
	case e.astray && e.final == nil:
		// To a batch that reads again the owner seems to have been passed without its delivery.
		// With at_least_once the member that was given up may have sent it meanwhile, and it is
		// sent twice.
		return append(w.allowedForCopy(e, s), pipeline.Forwarded)
	case e.again && e.final == nil && !slices.Contains(a.sources, e.owner):
		// The owner was read again and claimed again, and its batch was given up. A batch that
		// begins behind it cannot tell whether the owner was forwarded before, or dropped as a copy
		// of an owner whose claim has ended.
		return append(w.allowedForCopy(e, s), pipeline.Forwarded)
	case e.owner.unclaimed && e.final == nil:
		// It passed without an answer of the store, and owns nothing then: to a batch that reads
		// again it seems to have been passed without its delivery.
		return append(w.allowedForCopy(e, s), pipeline.Forwarded)
	}
	return w.allowedForCopy(e, s)
}

func (w *world) allowedForCopy(e *episode, s *source) []pipeline.Outcome {
	policy := w.mix.policy
	switch {
	case policy.Mode != pipeline.Enforce:
		return []pipeline.Outcome{pipeline.PassedThrough}
	case e.owner.sameContent(s):
		return []pipeline.Outcome{pipeline.Duplicate}
	}
	byPolicy := map[pipeline.Choice]pipeline.Outcome{pipeline.Drop: pipeline.Conflict,
		pipeline.Forward: pipeline.Forwarded, pipeline.DeadLetter: pipeline.DeadLettered}
	return []pipeline.Outcome{byPolicy[policy.OnConflict]}
}

// allowedForOwner: the owner of an ID is forwarded, unless it was. With at_least_once a forward
// that was not followed by a fence in time may be repeated, or may be recognised.
func (w *world) allowedForOwner(a *attempt, e *episode) []pipeline.Outcome {
	again := pipeline.Replay
	switch {
	case w.mix.policy.Mode != pipeline.Enforce:
		return []pipeline.Outcome{pipeline.Forwarded, pipeline.PassedThrough}
	case w.mix.policy.OnReplay == pipeline.Forward:
		again = pipeline.Forwarded
	}
	switch {
	case a.client.kept[e.owner].to != 0:
		// forwarded by this session, whatever others made of it meanwhile
		return []pipeline.Outcome{again, pipeline.Forwarded}
	case e.final != nil && e.final != a && !a.zombie:
		return []pipeline.Outcome{again}
	case a.zombie, e.owner.passed, e.owner.outlived,
		!w.mix.transactional && e.sent != nil && e.sent != a:
		return []pipeline.Outcome{again, pipeline.Forwarded}
	}
	return []pipeline.Outcome{pipeline.Forwarded}
}

// checkEnded: only a record without an ID ends a process for good.
func (w *world) checkEnded(p *process) {
	if p.killed || !errors.Is(p.err, pipeline.ErrStop) &&
		!errors.Is(p.err, consumer.ErrInputReplaced) {
		return
	}
	err := p.err

	if !p.fails || !errors.Is(err, pipeline.ErrStop) {
		w.failf("a lane stopped: %v", err)
	}
	w.saw(sightStopped)
}

// buried tells that the record is on the dead-letter topic instead of the clean one.
func (e *entry) buried() bool {
	return slices.Contains(forwarder.Reasons(),
		string(e.record.Headers[len(e.source.record.Headers)].Value))
}

// forwardedIDs counts the visible records of each ID that stand for its owner; one that was dropped
// leaves no trace.
func (w *world) forwardedIDs() map[string]int {
	found := make(map[string]int)
	for _, topic := range []string{topicClean, topicDead} {
		for _, e := range slices.Concat(w.topics[topic]...) {
			if e.visible() && (topic == topicClean || e.buried()) {
				found[string(e.source.id)]++
			}
		}
	}
	for _, p := range w.input {
		for _, s := range slices.Concat(p.sources, p.cutOff) {
			if w.drops(s) && s.handled && found[string(s.id)] == 0 {
				found[string(s.id)] = 1
			}
		}
	}
	return found
}
