//go:build !race

package simulation

import (
	"maps"
	"slices"

	"github.com/kdedup/kdedup/pipeline"
)

// checkEnd looks at the whole run once everything is committed, without what the model noted on the
// way where that is possible.
func (w *world) checkEnd() {
	w.checkInput()
	w.checkIDs()
	w.checkDrops()
	w.checkOrder()
	w.checkMetrics()
}

// checkInput: every record was handled, and none was changed by those that share its bytes.
func (w *world) checkInput() {
	for _, p := range w.input {
		for _, s := range p.sources {
			if !s.handled && !s.gone {
				w.failf("%v was skipped", s)
			}
			r := &s.pristine
			if !sameBytes(r.Key, s.record.Key) || !sameBytes(r.Value, s.record.Value) ||
				!slices.EqualFunc(r.Headers, s.record.Headers, sameHeader) ||
				s.record.Topic != inputTopic {
				w.failf("the polled record %v was changed", s)
			}
		}
	}
}

// checkIDs is the promise as the README has it.
func (w *world) checkIDs() {
	found := w.forwardedIDs()
	for _, p := range w.input {
		for _, s := range p.sources {
			if s.id == "" || s.gone || w.lostOwner(s.id) {
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

// checkDrops: each record that was dropped as a copy was one of a record that was forwarded, or of
// an ID that was claimed again and forwarded since. An owner that claims again may have been
// forwarded by its earlier claim.
func (w *world) checkDrops() {
	for _, id := range slices.Sorted(maps.Keys(w.claims)) {
		truth := w.claims[id]
		for n := truth.dropped - 1; n >= 0 && n < len(truth.episodes); n++ {
			if e := truth.episodes[n]; e.final != nil || e.owner.gone || e.owner.passed ||
				e.astray || !w.mix.transactional && e.sent != nil ||
				e.owner.outlived ||
				w.drops(e.owner) && e.owner.handled {
				break
			} else if n == len(truth.episodes)-1 {
				w.failf("lost: copies of %q were dropped for %v, which was never forwarded", id,
					e.owner)
			}
		}
	}
}

// checkOrder: each partition of the clean topic is in the order of the input, and goes back only
// where the input was set back. With at_least_once this holds for what was committed; the rest was
// repeated.
func (w *world) checkOrder() {
	for p, log := range w.topics[topicClean] {
		var last *entry
		for _, e := range log {
			if !e.visible() || !e.attempt.settled {
				continue
			}
			if last != nil && !last.before(e) {
				w.failf("out of order: on partition %d of the clean topic %v (%v) comes after %v "+
					"(%v)",
					p, e.source, e.attempt, last.source, last.attempt)
			}
			last = e
		}
	}
}

func (e *entry) before(o *entry) bool {
	p := e.source.record.Partition
	if e.attempt.rewinds[p] != o.attempt.rewinds[p] {
		return e.attempt.rewinds[p] < o.attempt.rewinds[p]
	}
	if mine, other := e.source.record.LeaderEpoch, o.source.record.LeaderEpoch; mine != other {
		return mine < other // an offset is used again in a log that was cut
	}
	return e.source.record.Offset < o.source.record.Offset
}

// checkMetrics: every record of a batch whose commit the lane heard of is counted once, by what
// became of it.
func (w *world) checkMetrics() {
	for i, slot := range w.slots {
		var got [numOutcomes]int
		families, err := slot.registry.Gather()
		if err != nil {
			panic(err)
		}
		for _, family := range families {
			if family.GetName() != "kdedup_records_total" {
				continue
			}
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					for _, o := range pipeline.Outcomes() {
						if label.GetName() == "outcome" && label.GetValue() == o.String() {
							got[o] += int(metric.GetCounter().GetValue())
						}
					}
				}
			}
		}
		want := slot.expected
		for o, most := range slot.either {
			more := min(max(got[o]-want[o], 0), max(want[pipeline.Forwarded]-
				got[pipeline.Forwarded], 0), most)
			want[o] += more
			want[pipeline.Forwarded] -= more
		}
		if w.mix.policy.OnUndeliverable == pipeline.DropUndeliverable { // neither leaves a trace
			for _, counts := range []*[numOutcomes]int{&got, &want} {
				counts[pipeline.Dropped] += counts[pipeline.Replay]
				counts[pipeline.Replay] = 0
			}
		}
		if w.mix.policy.Mode == pipeline.Enforce && got != want ||
			total(got) != total(slot.expected) {
			w.failf("process %d counted the outcomes %v, want %v", i, got, slot.expected)
		}
	}
}

func total(counts [numOutcomes]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
