package pipeline

import (
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// checkEnd looks at the whole run once everything is committed, without what the model noted on the
// way where that is possible.
func (w *modelWorld) checkEnd() {
	w.checkInput()
	w.checkIDs()
	w.checkDrops()
	w.checkOrder()
	w.checkMetrics()
}

// checkInput: every record was handled, and none was changed by those that share its bytes.
func (w *modelWorld) checkInput() {
	for _, p := range w.input {
		for _, s := range p.sources {
			if s.commits == 0 {
				w.failf("%v was skipped", s)
			}
			r := &s.pristine
			if !sameBytes(r.Key, s.record.Key) || !sameBytes(r.Value, s.record.Value) ||
				!slices.EqualFunc(r.Headers, s.record.Headers, sameHeader) || s.record.Topic != modelInput {
				w.failf("the polled record %v was changed", s)
			}
		}
	}
}

// checkIDs is the promise as the README has it.
func (w *modelWorld) checkIDs() {
	found := w.forwardedIDs()
	for _, p := range w.input {
		for _, s := range p.sources {
			if s.id == "" {
				continue
			}
			switch n := found[string(s.id)]; {
			case n == 0:
				w.failf("lost: %q (%v) is not on the clean topic", s.id, s)
			case n > 1 && w.mix.plain():
				w.failf("doubled: %q is %d times on the clean topic", s.id, n)
			}
		}
	}
}

// checkDrops: whoever was dropped as a copy was one of a record that was forwarded, or of an ID that
// was claimed anew and forwarded since.
func (w *modelWorld) checkDrops() {
	for id, truth := range w.claims {
		for n := truth.dropped - 1; n >= 0 && n < len(truth.episodes); n++ {
			if e := truth.episodes[n]; e.final != nil || e.owner.passed || !w.mix.transactional && e.sent != nil {
				break
			} else if n == len(truth.episodes)-1 {
				w.failf("lost: copies of %q were dropped for %v, which was never forwarded", id, e.owner)
			}
		}
	}
}

// checkOrder: each partition of the clean topic is in the order of the input, and goes back only where
// the input was set back. With at_least_once this holds for what was committed; the rest was repeated.
func (w *modelWorld) checkOrder() {
	for p, log := range w.topics[topicClean] {
		var last *modelEntry
		for _, e := range log {
			if !e.visible() || !e.attempt.settled {
				continue
			}
			if last != nil && !last.before(e) {
				w.failf("out of order: on partition %d of the clean topic %v (%v) comes after %v (%v)",
					p, e.source, e.attempt, last.source, last.attempt)
			}
			last = e
		}
	}
}

func (e *modelEntry) before(o *modelEntry) bool {
	p := e.source.record.Partition
	if e.attempt.rewinds[p] != o.attempt.rewinds[p] {
		return e.attempt.rewinds[p] < o.attempt.rewinds[p]
	}
	return e.source.record.Offset < o.source.record.Offset
}

// checkMetrics: every record of a batch whose commit the lane heard of is counted once, by what became
// of it.
func (w *modelWorld) checkMetrics() {
	for slot, m := range w.metrics {
		var got [len(outcomeNames)]int
		for o := range got {
			var metric dto.Metric
			if err := m.outcomes[o].Write(&metric); err != nil {
				panic(err)
			}
			got[o] = int(metric.GetCounter().GetValue())
		}
		if w.mix.policy.Mode == Enforce && got != w.expected[slot] || total(got) != total(w.expected[slot]) {
			w.failf("lane %d counted the outcomes %v, want %v", slot, got, w.expected[slot])
		}
	}
}

func total(counts [len(outcomeNames)]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
