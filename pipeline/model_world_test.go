package pipeline

import (
	"fmt"
	"math/rand/v2"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/forwarder"
)

// modelWorld is one run: a model of Kafka, a store, and some processes with one lane each.
type modelWorld struct {
	mix  modelMix
	dice *modelDice
	step int
	modelTrace
	modelSeen

	input    []*modelPartition
	bySource map[int64]*modelSource // by timestamp
	produced int
	ids      int

	topics map[string]modelTopic
	txnIDs []*modelTxnID // by slot
	txns   []*modelTxn   // that are open or lack markers
	group  modelGroup

	store     *memory.Store
	storeDown bool
	claims    map[dedup.ID]*modelClaims
	late      []lateClaim

	slots     []*modelLane
	extractor *dedup.Extractor
	dedups    *dedup.Metrics
	forwards  *forwarder.Topics
	metrics   []*Metrics
	expected  [][len(outcomeNames)]int

	attempts int
	stopping bool // an operator stops everything to set the offsets back
	draining bool // no more faults: everything must get through now
	failed   bool
}

func newModelWorld(seed uint64, given []byte) *modelWorld {
	dice := &modelDice{given: given, random: rand.New(rand.NewPCG(seed, 0))}
	w := &modelWorld{
		mix: drawMix(dice), dice: dice,
		bySource: make(map[int64]*modelSource), topics: make(map[string]modelTopic),
		claims: make(map[dedup.ID]*modelClaims),
		forwards: &forwarder.Topics{
			Output: topicClean, DeadLetter: topicDead, MaxBytes: map[string]int{topicClean: modelCleanMax},
		},
	}
	if w.mix.duplicatesTopic {
		w.forwards.Duplicates = topicDuplicates
	}
	w.store = newStore(w)
	w.makeKafka()
	w.makeLanes()
	return w
}

func (w *modelWorld) makeKafka() {
	n := w.mix.partitions
	for range n {
		w.input = append(w.input, &modelPartition{})
		w.group.committed = append(w.group.committed, pendingOffset{next: -1})
	}
	for _, name := range []string{topicClean, topicDuplicates, topicDead, topicFence} {
		w.topics[name] = make(modelTopic, n)
	}
	w.group.owner, w.group.target = make([]*modelSession, n), make([]*modelSession, n)
}

func (w *modelWorld) makeLanes() {
	var err error
	if w.extractor, err = dedup.NewExtractor(dedup.Source{From: "header", Name: "id"}); err != nil {
		panic(err)
	}
	registry := prometheus.NewRegistry()
	w.dedups = dedup.NewCollectors(registry).For(modelInput, "0")
	w.slots = make([]*modelLane, w.mix.lanes)
	w.expected = make([][len(outcomeNames)]int, w.mix.lanes)
	for i := range w.mix.lanes {
		// One family of collectors for each slot: their counters are per topic.
		w.metrics = append(w.metrics, NewCollectors(prometheus.NewRegistry()).For(modelInput, i))
		w.txnIDs = append(w.txnIDs, &modelTxnID{})
	}
	if w.mix.sharedInstance {
		w.txnIDs[1] = w.txnIDs[0]
	}
	for i := range w.slots {
		w.start(i)
	}
}

func (w *modelWorld) fault(f modelFault) bool {
	return !w.draining && w.dice.oneIn(w.mix.faults[f])
}

// violation is what a check panics with.
type violation string

func (w *modelWorld) failf(format string, args ...any) {
	w.failed = true
	panic(violation(fmt.Sprintf(format, args...)))
}

// run makes a number of steps with faults, and then as many as it takes without.
func (w *modelWorld) run(steps int) {
	for w.step = 0; w.step < steps; w.step++ {
		if w.dice.n(2) == 0 || !w.runLane() {
			w.happen(w.drawEvent())
		}
	}
	w.drain()
	w.checkEnd()
}

// runLane lets one lane go on to its next call.
func (w *modelWorld) runLane() bool {
	first := w.dice.n(len(w.slots))
	for i := range w.slots {
		l := w.slots[(first+i)%len(w.slots)]
		if l.canGoOn() {
			l.next()
			return true
		}
	}
	return false
}

func (w *modelWorld) drawEvent() modelEvent {
	total := 0
	for _, weight := range w.mix.weights {
		total += weight
	}
	at := w.dice.n(total)
	for e, weight := range w.mix.weights {
		if at -= weight; at < 0 {
			return modelEvent(e)
		}
	}
	panic("weights changed")
}

func (w *modelWorld) happen(e modelEvent) {
	switch e {
	case eventAppend:
		w.produce()
	case eventCrash:
		w.crash(w.slots[w.dice.n(len(w.slots))])
	case eventStart:
		w.startAgain()
	case eventPause:
		w.slots[w.dice.n(len(w.slots))].paused = w.step + w.dice.n(400)
	case eventRetire:
		w.slots[w.dice.n(len(w.slots))].retire()
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
	case eventTimeout:
		if t := w.randomTxn((*modelTxn).open); t != nil {
			w.timeOut(t)
		}
	case eventMarker:
		if t := w.randomTxn((*modelTxn).decided); t != nil {
			w.mark(t)
		}
	case eventLateClaim:
		w.landLate()
	case eventClock:
		w.passTime()
	case eventOutage:
		w.storeDown = !w.storeDown
	case eventRewind:
		w.stopping = true
	}
	w.rewind()
}

func (w *modelWorld) crash(l *modelLane) {
	if l.ended {
		return
	}
	w.trace(l.slot, "process dies")
	l.kill()
}

func (w *modelWorld) startAgain() {
	for slot, l := range w.slots {
		if l.ended && !w.stopping {
			w.start(slot)
			return
		}
	}
}

// rewind is what an operator does once everything has stopped: some partitions go back. The group
// must be empty (OffsetCommit of an admin client). Transactions may still be open, or lack markers.
func (w *modelWorld) rewind() {
	if !w.stopping {
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
	for p, at := range w.group.committed {
		if at.next > 0 && w.dice.oneIn(2) {
			w.group.seq++
			w.group.store(pendingOffset{int32(p), int64(w.dice.n(int(at.next))), w.group.seq})
			w.input[p].rewinds++
			w.saw(sightRewind)
			w.trace(-1, "partition %d is set back from %d to %d", p, at.next, w.group.committed[p].next)
		}
	}
}

// retireAll reports whether a process still lives. One that does not end by itself is killed some time.
func (w *modelWorld) retireAll() (alive bool) {
	for _, l := range w.slots {
		if l.ended {
			continue
		}
		l.retire()
		if alive = true; w.dice.oneIn(200) {
			w.crash(l)
		}
	}
	return alive
}

// close ends all goroutines.
func (w *modelWorld) close() {
	w.failed = true // nothing is checked any more
	for _, l := range w.slots {
		l.retire()
		if l.dying = true; !l.ended {
			l.next()
		}
	}
}
