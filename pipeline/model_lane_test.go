package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// modelLane is a process with one lane. The product's code runs on a goroutine that gives way at every
// call of the session and of the store, and only the scheduler lets it go on: one goroutine runs at a
// time, and the order of all steps follows from the seed. (Coroutines of package iter would do, but the
// race detector never forgets one.)
type modelLane struct {
	w        *modelWorld
	slot     int
	resume   chan struct{} // the scheduler lets the lane go on
	gaveWay  chan struct{} // the lane waits, or has ended
	panicked any           // what ended it

	ready   func() bool // what the lane waits for; nil if it can go on
	paused  int         // until this step
	dying   bool
	ended   bool
	retire  context.CancelFunc // polling ends
	session *modelSession
	seat    *seat
}

// killed ends the goroutine of a process that dies.
type killed struct{}

// start begins a process in a slot whose last one ended. Metrics go on, as those of a lane that is
// scraped under the same name.
func (w *modelWorld) start(slot int) {
	polling, retire := context.WithCancel(context.Background())
	l := &modelLane{w: w, slot: slot, retire: retire, resume: make(chan struct{}), gaveWay: make(chan struct{})}
	log := slog.New(slog.DiscardHandler)
	retry := dedup.Retry{GiveUpAfter: w.mix.giveUp} // no pauses: the scheduler says who goes on
	l.seat = &seat{
		number: slot, options: &Options{Join: l.join, Policy: w.mix.policy}, metrics: w.metrics[slot], log: log,
		judge: dedup.New(modelScope, w.extractor, modelStore{l}, retry, w.dedups, log),
	}
	go l.live(polling)
	w.slots[slot] = l
	w.trace(slot, "process starts")
}

// live is seat.run without its pauses. It ends when polling ends, or when the process is killed.
func (l *modelLane) live(polling context.Context) {
	defer l.end()
	<-l.resume
	for polling.Err() == nil && !l.dying {
		_, err := l.seat.sit(polling, context.Background())
		switch {
		case err == nil:
		case classify(err) == stop:
			l.w.checkStop(err)
			return
		default:
			l.w.trace(l.slot, "lane failed: %v", err)
			l.pause()
		}
	}
}

// end hands a panic on to the scheduler.
func (l *modelLane) end() {
	switch r := recover().(type) {
	case nil, killed:
	case violation:
		l.panicked = r
	default:
		l.panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
	}
	l.ended = true
	l.gaveWay <- struct{}{}
}

// next lets the lane go on to its next call.
func (l *modelLane) next() {
	l.resume <- struct{}{}
	<-l.gaveWay
	if l.panicked != nil {
		panic(l.panicked)
	}
}

// pause lets everybody else act.
func (l *modelLane) pause() { l.wait(nil) }

// wait lets everybody else act, until ready. A process that is killed does not come back from it.
func (l *modelLane) wait(ready func() bool) {
	l.ready = ready
	l.gaveWay <- struct{}{}
	<-l.resume
	if l.dying {
		panic(killed{})
	}
	l.ready = nil
}

func (l *modelLane) canGoOn() bool {
	return !l.ended && (l.paused <= l.w.step || l.w.draining) && (l.ready == nil || l.ready())
}

// kill ends the process where it stands.
func (l *modelLane) kill() {
	l.dying = true
	l.next()
	l.retire()
	if s := l.session; s != nil && !s.dead {
		s.die()
	}
}

// join makes a session; the group hears of it at once and assigns partitions later.
func (l *modelLane) join(context.Context, int) (Session, *forwarder.Topics, error) {
	l.pause()
	if l.w.fault(faultJoin) {
		return nil, nil, errors.New("model: no broker")
	}
	w := l.w
	s := &modelSession{w: w, lane: l, generation: -1, held: make([]heldPartition, w.mix.partitions), txnID: w.txnIDs[l.slot]}
	if w.mix.transactional {
		s.initProducer()
	}
	l.session = s
	w.group.members = append(w.group.members, s)
	w.group.changed = true
	w.trace(l.slot, "joins")
	if w.mix.transactional {
		return modelExactlyOnce{s}, w.forwards, nil
	}
	return modelAtLeastOnce{s}, w.forwards, nil
}

// count adds what the metrics must show once the lane has heard that its batch is committed.
func (l *modelLane) count(a *modelAttempt) {
	for o, n := range a.outcomes {
		l.w.expected[l.slot][o] += n
	}
}
