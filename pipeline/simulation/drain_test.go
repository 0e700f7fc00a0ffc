//go:build !race

package simulation

import (
	"slices"
	"time"

	"github.com/kdedup/kdedup/pipeline"
)

// drainSteps is far more than any run needs without faults.
const drainSteps = 200_000

// drain ends all faults and lets the lanes work until every record is committed.
func (w *world) drain() {
	w.draining, w.storeDown, w.deadGone, w.late = true, false, false, nil
	w.away = [clusters]bool{}
	w.trace(-1, "no more faults from here on")
	w.outputs = w.mix.partitions
	w.group.changed = w.group.changed || w.width > w.mix.first // some may be nobody's yet
	stops := w.mix.policy.OnUndeliverable == pipeline.StopAtUndeliverable
	if w.mix.policy.OnMissingID == pipeline.Fail || stops {
		if stops { // as an operator would
			w.mix.policy.OnUndeliverable = pipeline.BuryUndeliverable
		}
		if w.mix.policy.OnMissingID == pipeline.Fail {
			w.mix.policy.OnMissingID = pipeline.Drop
		}
		for _, p := range w.processes {
			w.crash(p)
		}
	}
	for range drainSteps {
		w.step++
		if w.stopping {
			w.happen(eventMarker) // until the operator is done
		}
		w.settleDown()
		if w.dice.oneIn(8) {
			w.publish()
			time.Sleep(w.moment()) // for what waits for a time
			w.settle()
			continue
		}
		if !w.runCall() && w.allCommitted() {
			return
		}
	}
	w.failf("no progress: after %d steps without faults not every record is committed", drainSteps)
}

// moment is short, unless a partition is held: then it goes on a while later.
func (w *world) moment() time.Duration {
	for _, p := range w.processes {
		if p.client != nil && !p.client.closed &&
			slices.ContainsFunc(p.client.held, func(h held) bool {
				return h.paused
			}) {
			return 10 * time.Second
		}
	}
	return 10 * time.Millisecond
}

// settleDown does one of the things that the cluster does by itself.
func (w *world) settleDown() {
	w.startAgain()
	w.notice()
	w.answerCommits()
	w.beginApart()
	w.validate()
	switch t := w.randomTxn((*transaction).abandoned); {
	case t != nil && t.state == txnOpen:
		w.timeOut(t)
	case t != nil:
		w.mark(t)
	case w.group.changed:
		w.kick(true)
		w.rebalance()
	default:
		w.kick(true)
		w.learn()
		w.move()
	}
}

// abandoned tells that nobody but the coordinator will end the transaction.
func (t *transaction) abandoned() bool {
	return t.state != txnOpen || t.client.closed || t.client.txn != t
}

func (w *world) allCommitted() bool {
	if len(w.txns) > 0 || w.stopping {
		return false
	}
	for p, at := range w.group.committed {
		if slices.ContainsFunc(w.input[p].from(0), func(s *source) bool {
			return !s.handled || s.record.Offset >= at.next
		}) {
			return false
		}
	}
	return true
}
