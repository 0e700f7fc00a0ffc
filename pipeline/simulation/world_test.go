//go:build !race

package simulation

import (
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/forwarder"
)

// world is one run: a model of Kafka, a store, and some processes with one lane each.
type world struct {
	mix  mix
	dice *dice
	step int
	schedule
	tracer
	sightings

	input    []*partition      // also those that are not there yet
	width    int               // how many of them are
	outputs  int               // partitions of the clean topic and of the fence topic
	bySource map[int64]*source // by timestamp
	produced int
	ids      int

	topics map[string]topicLog
	txns   []*transaction // that are open or lack markers
	group  group

	store     *memory.Store
	skew      time.Duration // of the clock that the store reads now
	storeDown bool
	deadGone  bool // the dead-letter topic is
	away      [clusters]bool
	claims    map[dedup.ID]*claimsOf
	late      []lateClaim

	slots     []*slot
	processes []*process // by slot
	extractor *messageid.Extractor
	forwards  *forwarder.Topics

	attempts   int
	stopping   bool   // an operator stops everything to change the offsets
	draining   bool   // no more faults: everything must get through now
	scheduling bool   // no goroutine of the product runs
	violated   string // by a goroutine of the product
	closing    bool
}

func newWorld(seed uint64, given []byte, trace bool) *world {
	dice := &dice{given: given, random: rand.New(rand.NewPCG(seed, 0))}
	w := &world{
		mix: drawMix(dice), dice: dice, scheduling: true,
		bySource: make(map[int64]*source), topics: make(map[string]topicLog),
		claims: make(map[dedup.ID]*claimsOf),
		forwards: &forwarder.Topics{
			Output: topicClean, DeadLetter: topicDead,
			MaxBytes: map[string]int{topicClean: cleanMax},
		},
	}
	w.on = trace
	if w.mix.duplicatesTopic {
		w.forwards.Duplicates = topicDuplicates
	}
	w.store = newStore(w)
	w.makeKafka()
	var err error
	w.extractor, err = messageid.New(messageid.Source{From: "header", Name: "id"})
	if err == nil {
		w.extractor, err = w.extractor.With(messageid.Rules{Tombstones: true,
			OnlyIf: &messageid.Condition{
				Place: messageid.Source{From: "header", Name: kindHeader}}})
	}
	if err != nil {
		panic(err)
	}
	return w
}

func (w *world) makeKafka() {
	n := w.mix.partitions
	w.width, w.outputs = w.mix.first, w.mix.first
	w.group.name = "orders-dedup"
	for range n {
		w.input = append(w.input, &partition{})
		w.group.committed = append(w.group.committed, pendingOffset{next: -1, epoch: -1})
	}
	for _, name := range []string{topicClean, topicDuplicates, topicDead, topicFence} {
		w.topics[name] = make(topicLog, n)
	}
	w.group.owner, w.group.target = make([]*client, n), make([]*client, n)
}

func (w *world) fault(f fault) bool {
	return !w.draining && !w.closing && w.dice.oneIn(w.mix.faults[f])
}

// run makes a number of steps with faults, and then as many as it takes without.
func (w *world) run(steps int) {
	w.makeSlots()
	for w.step = 0; w.step < steps; w.step++ {
		if w.dice.n(2) == 0 || !w.runCall() {
			w.happen(w.drawEvent())
			w.settle()
		}
	}
	w.drain()
	w.checkEnd()
}

func (w *world) drawEvent() event {
	total := 0
	for _, weight := range w.mix.weights {
		total += weight
	}
	at := w.dice.n(total)
	for e, weight := range w.mix.weights {
		if at -= weight; at < 0 {
			return event(e)
		}
	}
	panic("weights changed")
}

func (w *world) happen(e event) {
	if w.impossible(e) {
		return
	}
	switch e {
	case eventAppend:
		w.produce()
	case eventCrash:
		w.crash(w.processes[w.dice.n(len(w.processes))])
	case eventStart:
		w.startAgain()
	case eventPause:
		w.processes[w.dice.n(len(w.processes))].paused = w.step + w.dice.n(400)
	case eventRetire:
		w.processes[w.dice.n(len(w.processes))].retire()
	case eventRebalance:
		w.rebalance()
	case eventMove:
		w.move()
	case eventLearn:
		w.learn()
	case eventKick:
		w.kick(false)
	case eventNotice:
		w.notice()
	case eventCommits:
		w.answerCommits()
	case eventValidate:
		w.validate()
	case eventTimeout:
		if t := w.randomTxn((*transaction).open); t != nil {
			w.timeOut(t)
		}
	case eventMarker:
		if t := w.randomTxn((*transaction).decided); t != nil {
			w.mark(t)
		}
	case eventLateClaim:
		w.landLate()
	case eventMoment:
		w.publish()
		time.Sleep([]time.Duration{5, 60, 300, 3000}[w.dice.n(4)] * time.Millisecond)
	case eventClock:
		w.passTime()
	case eventDeadTopic:
		w.deadGone = !w.deadGone
	case eventSkip:
		w.skip()
	case eventOutage:
		w.storeDown = !w.storeDown
	case eventCompact:
		w.compact()
	case eventOperator:
		w.stopping = true
	case eventGrow:
		w.grow()
	case eventBegin:
		w.beginApart()
	case eventAway:
		w.goAway()
	case eventCut:
		w.cutLog()
	}
	w.operate()
}

// grow makes a partition more: of the input, or of what is written. Members hear of it by a
// rebalance.
func (w *world) grow() {
	n := w.mix.partitions
	switch input := w.dice.oneIn(2); {
	case input && w.width < n:
		w.width++
		w.group.changed = true
		w.trace(-1, "the input has %d partitions", w.width)
	case !input && w.outputs < n:
		w.outputs++
		w.trace(-1, "the clean topic and the fence topic have %d partitions", w.outputs)
	}
}

// skip is what `kdedup skip` does: the next record of a partition is wanted out of the way.
func (w *world) skip() {
	n := w.dice.n(w.mix.partitions)
	p := w.input[n]
	last := w.lastFence(int32(n))
	left := slices.DeleteFunc(p.from(0), func(s *source) bool {
		return s.record.Offset < last.Next() && s.record.LeaderEpoch <= last.LeaderEpoch
	})
	if len(left) == 0 {
		return
	}
	left[0].skipped = true
	p.skip = &fence.Skip{TopicID: w.topicID(), Offset: left[0].record.Offset,
		LeaderEpoch: left[0].record.LeaderEpoch, DeadLetter: w.dice.oneIn(2)}
	w.trace(-1, "an operator skips %v", left[0])
}

func (w *world) startAgain() {
	for slot, p := range w.processes {
		if p.ended && !w.stopping {
			w.checkEnded(p)
			w.start(slot)
			return
		}
	}
}

// operate is what an operator does once everything has stopped. The group must be empty
// (OffsetCommit of an admin client). Transactions may still be open, or lack markers.
func (w *world) operate() {
	if !w.stopping || w.away[clusterOfOutput] {
		return
	}
	if w.retireAll() {
		return
	}
	if len(w.group.members) > 0 {
		w.kick(true)
		return
	}
	w.stopping = false
	switch {
	case !w.mix.moves || w.dice.oneIn(3):
		w.setBack()
	case w.dice.oneIn(2) && w.mix.topicIDs != changing:
		for p := range w.input {
			if w.rereading(p) {
				return
			}
		}
		w.rename(w.dice.oneIn(2))
	default:
		w.setForward()
	}
}

// rereading tells that offsets which were set back are below the fence. What was read again may
// have claimed its ID again, and nothing tells of that when the offset is moved once more before it
// was committed.
func (w *world) rereading(p int) bool {
	return w.group.committed[p].next < w.lastFence(int32(p)).Next()
}

func (w *world) setBack() {
	for p, at := range w.group.committed {
		if at.next > 0 && w.dice.oneIn(2) {
			w.group.seq++
			w.group.store(pendingOffset{int32(p), int64(w.dice.n(int(at.next))), -1,
				w.group.seq})
			w.input[p].rewinds++
			w.saw(sightRewind)
			w.trace(-1, "partition %d is set back from %d to %d", p, at.next,
				w.group.committed[p].next)
		}
	}
}

// setForward skips records of partitions that have a fence: nobody believes that. Of a partition
// without one it would be where the operator has the group begin.
func (w *world) setForward() {
	for p, at := range w.group.committed {
		end := int(w.input[p].end)
		if at.next > 0 && int(at.next) < end && !w.rereading(p) &&
			w.lastFence(int32(p)).Next() > 0 && w.dice.oneIn(2) {
			w.group.seq++
			further := at.next + 1 + int64(w.dice.n(end-int(at.next)))
			w.group.store(pendingOffset{int32(p), further, -1, w.group.seq})
			w.trace(-1, "partition %d is set forward from %d to %d", p, at.next,
				w.group.committed[p].next)
		}
	}
}

// retireAll reports whether a process still lives. One that does not end by itself is killed some
// time.
func (w *world) retireAll() (alive bool) {
	for _, p := range w.processes {
		if p.ended {
			continue
		}
		p.retire()
		if alive = true; w.dice.oneIn(200) {
			w.crash(p)
		}
	}
	return alive
}

// close ends all goroutines.
func (w *world) close() {
	w.closing, w.scheduling = true, true // nothing is checked any more
	w.violated = ""
	for _, p := range w.processes {
		if p != nil && !p.ended {
			p.killed = true
			if c := p.client; c != nil && c.commit != nil && !c.commit.landed {
				c.commit.answer(w, errAnswer)
			}
			p.retire()
		}
	}
	for len(w.waiting) > 0 {
		for _, c := range append([]*call(nil), w.waiting...) {
			w.resume(c)
		}
		w.publish()
		synctest.Wait()
	}
	for _, p := range w.processes {
		for range 1000 {
			if p == nil || p.ended {
				break
			}
			w.publish()
			time.Sleep(time.Second)
			synctest.Wait()
			for _, c := range append([]*call(nil), w.waiting...) {
				w.resume(c)
			}
		}
	}
}
