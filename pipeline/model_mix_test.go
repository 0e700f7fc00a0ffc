package pipeline

import (
	"math/rand/v2"
	"time"
)

// modelDice is the only source of chance in a run, so that a seed replays it exactly. Bytes of a
// fuzzer are used up first.
type modelDice struct {
	given  []byte
	random *rand.Rand
}

// n returns one of 0 … k-1.
func (d *modelDice) n(k int) int {
	switch {
	case k <= 1:
		return 0
	case len(d.given) > 0 && k <= 256:
		b := d.given[0]
		d.given = d.given[1:]
		return int(b) * k / 256
	case len(d.given) > 1:
		b := int(d.given[0])<<8 | int(d.given[1])
		d.given = d.given[2:]
		return b * k / (1 << 16)
	}
	return d.random.IntN(k)
}

// oneIn is true once in k times on average, and never if k is zero.
func (d *modelDice) oneIn(k int) bool { return k > 0 && d.n(k) == 0 }

// modelEvent is something that happens besides the lanes' own steps.
type modelEvent int

const (
	eventAppend    modelEvent = iota // a producer appends a record: new, or a copy
	eventCrash                       // a process dies
	eventStart                       // a process that died or ended starts again
	eventPause                       // a process stands still for a while
	eventRetire                      // a process is told to end and finishes its batch
	eventRebalance                   // the group forms a new generation
	eventMove                        // the assignment makes one step towards the new generation
	eventLearn                       // a member hears of the present generation
	eventKick                        // the group's coordinator gives a member up
	eventNotice                      // a member that was given up hears of it and joins again
	eventCommits                     // the group's coordinator answers commits of offsets
	eventTimeout                     // a transaction times out
	eventMarker                      // the markers of a transaction that was decided are written
	eventLateClaim                   // a claim that was reported as undecided takes effect only now
	eventClock                       // time passes
	eventOutage                      // the store goes down or comes back
	eventRewind                      // an operator stops everything and sets the offsets back
	modelEvents
)

var eventWeights = [modelEvents]int{
	eventAppend: 90, eventCrash: 5, eventStart: 25, eventPause: 5, eventRetire: 2, eventRebalance: 8, eventMove: 80,
	eventLearn: 30, eventKick: 4, eventNotice: 12, eventCommits: 60, eventTimeout: 4, eventMarker: 50, eventLateClaim: 5, eventClock: 4,
	eventOutage: 2, eventRewind: 2,
}

// modelFault is something that goes wrong within a step of a lane.
type modelFault int

const (
	faultJoin            modelFault = iota // a session cannot be made
	faultPoll                              // a fetch fails for good
	faultReadFence                         // a fence cannot be read
	faultClaimLost                         // a claim does not arrive
	faultClaimUnreported                   // a claim takes effect and its answer is lost
	faultClaimLate                         // a claim takes effect later, or never
	faultBegin                             // a transaction cannot be begun
	faultProduce                           // a run of records fails: unwritten, written, or only its first
	faultFlush                             // a flush ends before everything was sent
	faultTxnOffsets                        // the group's coordinator refuses for a passing reason
	faultEnd                               // the end of a transaction is not answered, or with an error that says nothing
	faultCommit                            // the same for a commit of offsets
	faultLeave                             // the group does not hear that a member left
	modelFaults
)

// modelMix is what one run is made of. Each seed draws its own ("swarm testing"): a run without
// crashes gets further into rebalances than one that has everything.
type modelMix struct {
	transactional     bool
	partitions, lanes int
	batch             int // most records of a poll
	records           int // most records that are produced
	policy            Policy
	giveUp            time.Duration // dedup.Retry.GiveUpAfter
	sharedInstance    bool          // two processes have the same instance name
	duplicatesTopic   bool
	weights           [modelEvents]int
	faults            [modelFaults]int // one in …; 0 is never

	// One record in … of those appended; 0 is none.
	copies, conflicts, missing, oversize, gaps int
	recent                                     int // copies are of one of the last so many IDs
}

const modelTTL = 10 * time.Minute

func drawMix(d *modelDice) modelMix {
	m := modelMix{
		transactional: d.n(3) > 0,
		partitions:    1 + d.n(4), lanes: 2 + d.n(4), batch: 1 + d.n(20), records: 40 + d.n(200),
		sharedInstance: d.oneIn(6), duplicatesTopic: d.oneIn(2),
		copies: 1 + d.n(4), recent: 2 + d.n(30),
		conflicts: d.n(2) * 8, missing: d.n(2) * 8, oversize: d.n(2) * 15, gaps: d.n(2) * 8,
	}
	m.drawPolicy(d)
	m.drawRates(d)
	return m
}

func (m *modelMix) drawPolicy(d *modelDice) {
	if d.oneIn(5) {
		m.policy.Mode = []Mode{Annotate, Observe}[d.n(2)]
	}
	m.policy.OnMissingID = []Choice{Drop, Forward, DeadLetter, Fail}[d.n(4)]
	m.policy.OnConflict = []Choice{Drop, Forward, DeadLetter}[d.n(3)]
	if d.oneIn(4) {
		m.policy.OnReplay = Forward
	}
	if d.oneIn(5) {
		m.giveUp = modelTTL / 10
	}
}

// drawRates leaves out one event in three, and two faults in three.
func (m *modelMix) drawRates(d *modelDice) {
	for e := range m.weights {
		m.weights[e] = eventWeights[e] * (1 + d.n(3))
		if eventWeights[e] <= 5 && d.oneIn(3) {
			m.weights[e] = 0
		}
	}
	for f := range m.faults {
		if d.oneIn(3) {
			m.faults[f] = 3 + d.n(60)
		}
	}
}

// plain tells that the README's sentence holds without any exception.
func (m *modelMix) plain() bool {
	return m.transactional && m.policy.Mode == Enforce && m.policy.OnConflict != Forward && m.policy.OnReplay == Drop &&
		m.giveUp == 0 && m.weights[eventClock] == 0
}
