package pipeline

// drainSteps is far more than any run needs without faults.
const drainSteps = 200_000

// drain ends all faults and lets the lanes work until every record is committed.
func (w *modelWorld) drain() {
	w.draining, w.storeDown, w.late = true, false, nil
	w.trace(-1, "no more faults from here on")
	if w.mix.policy.OnMissingID == Fail {
		w.mix.policy.OnMissingID = Drop // as an operator would
		for _, l := range w.slots {
			w.crash(l)
		}
	}
	for range drainSteps {
		w.step++
		if w.stopping {
			w.happen(eventMarker) // until the operator is done
		}
		w.settleDown()
		if w.dice.oneIn(8) {
			continue
		}
		if !w.runLane() && w.allCommitted() {
			return
		}
	}
	w.failf("no progress: after %d steps without faults not every record is committed", drainSteps)
}

// settleDown does one of the things that the cluster does by itself.
func (w *modelWorld) settleDown() {
	w.startAgain()
	w.notice()
	w.answerCommits()
	switch t := w.randomTxn((*modelTxn).abandoned); {
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
func (t *modelTxn) abandoned() bool {
	s := t.attempt.session
	return t.state != txnOpen || s.dead || s.txn != t
}

func (w *modelWorld) allCommitted() bool {
	if len(w.txns) > 0 || w.stopping {
		return false
	}
	for p, at := range w.group.committed {
		if at.next < w.input[p].end && len(w.input[p].sources) > 0 {
			return false
		}
	}
	return true
}
