//go:build !race

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/kdedup/kdedup/pipeline"
)

// dice is the only source of chance in a run, so that a seed replays it exactly. Bytes of a
// fuzzer are used up first.
type dice struct {
	given  []byte
	random *rand.Rand
}

// n returns one of 0 … k-1.
func (d *dice) n(k int) int {
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
func (d *dice) oneIn(k int) bool { return k > 0 && d.n(k) == 0 }

// event is something that happens besides the lanes' own steps.
type event int

const (
	eventAppend    event = iota // a producer appends a record: new, or a copy
	eventCrash                  // a process dies
	eventStart                  // a process that died or ended starts again
	eventPause                  // a process stands still for a while
	eventRetire                 // a process is told to end and finishes its batch
	eventRebalance              // the group forms a new generation
	eventMove                   // the assignment makes one step towards the new generation
	eventLearn                  // a member hears of the present generation
	eventKick                   // the group's coordinator gives a member up
	eventNotice                 // a member that was given up hears of it and joins again
	eventCommits                // the group's coordinator answers commits of offsets
	eventTimeout                // a transaction times out
	eventMarker                 // the markers of a transaction that was decided are written
	eventLateClaim              // a claim that was reported as undecided takes effect only now
	eventClock                  // time passes
	eventOutage                 // the store goes down or comes back
	eventDeadTopic              // the dead-letter topic is gone, or back
	eventSkip                   // an operator has the record skipped at which a partition is held
	eventMoment                 // a moment passes, for what waits for a time
	eventValidate               // leaders answer OffsetForLeaderEpoch
	eventCompact                // the input is compacted
	eventOperator               // an operator stops everything and changes the group's offsets
	eventGrow                   // the input gets one more partition, or its counterparts do
	eventBegin                  // two clusters: members read what they were assigned
	eventAway                   // two clusters: one of them is away, or back
	eventCut                    // an unclean election cuts the input's log
	events
)

var eventWeights = [events]int{
	eventAppend: 90, eventCrash: 5, eventStart: 25, eventPause: 5, eventRetire: 2,
	eventRebalance: 8, eventMove: 80,
	eventLearn: 30, eventKick: 4, eventNotice: 12, eventCommits: 60, eventTimeout: 4,
	eventMarker: 50, eventLateClaim: 5, eventClock: 4,
	eventOutage: 2, eventDeadTopic: 3, eventSkip: 2, eventMoment: 20, eventValidate: 20,
	eventCompact: 20, eventOperator: 2, eventGrow: 5,
	eventBegin: 60, eventAway: 12, eventCut: 8,
}

// fault is something that goes wrong within a step of a lane.
type fault int

const (
	faultJoin            fault = iota // a session cannot be made
	faultPoll                         // a fetch fails for good
	faultReadFence                    // a fence cannot be read
	faultClaimLost                    // a claim does not arrive
	faultClaimUnreported              // a claim takes effect and its answer is lost
	faultClaimLate                    // a claim takes effect later, or never
	faultBegin                        // a transaction cannot be begun
	// a run of records fails: unwritten, written, or only its first
	faultProduce
	faultFlush      // a flush ends before everything was sent
	faultTxnOffsets // the group's coordinator refuses for a passing reason
	faultEnd        // the end of a transaction is not answered, or with an error that says nothing
	faultCommit     // the same for a commit of offsets
	faultLeave      // the group does not hear that a member left
	faultValidate   // a leader is slow to tell whether its log was cut
	faultRequest    // another request is not answered
	faults
)

// mix is what one run is made of. Each seed draws its own ("swarm testing"): a run without
// crashes gets further into rebalances than one that has everything.
type mix struct {
	transactional         bool
	apart                 bool // the input is on one cluster, and all else on another
	partitions, processes int
	first                 int // partitions that are there from the beginning
	batch                 int // most records of a poll
	records               int // most records that are produced
	policy                pipeline.Policy
	giveUp                time.Duration // dedup.Retry.GiveUpAfter
	sharedInstance        bool          // two processes have the same instance name
	duplicatesTopic       bool
	// the input; copies have the key of their original, and its partition
	compacted bool
	topicIDs  topicIDs // do the brokers tell them?
	skewed    bool     // processes have clocks of their own
	moves     bool     // operators do more to the group than to set it back
	// the client heeds no Seek to a partition while it asks a leader, as franz-go before 1.22.2
	passesOver bool
	weights    [events]int
	faults     [faults]int // one in …; 0 is never

	// One record in … of those appended; 0 is none.
	copies, conflicts, missing, exempt, tombstones, oversize, ahead, invalid, gaps int
	// copies are of one of the last n IDs
	recent int
}

// topicIDs tells what fetches say of the input's topic ID.
type topicIDs uint8

const (
	told     topicIDs = iota
	changing          // by the broker that answers: a rolling upgrade
	untold
)

func (w *world) topicID() (id [16]byte) {
	if w.mix.topicIDs == told || w.mix.topicIDs == changing && w.dice.oneIn(2) {
		return inputID
	}
	return id
}

const ttl = 10 * time.Minute

func drawMix(d *dice) mix {
	m := mix{
		transactional: d.n(3) > 0,
		partitions:    1 + d.n(4), processes: 2 + d.n(4), batch: 1 + d.n(20),
		records:        40 + d.n(200),
		sharedInstance: d.oneIn(6), duplicatesTopic: d.oneIn(2),
		copies: 1 + d.n(4), recent: 2 + d.n(30),
		conflicts: d.n(2) * 8, missing: d.n(2) * 8, oversize: d.n(2) * 15, ahead: d.n(2) * 12,
		invalid: d.n(2) * 12, gaps: d.n(2) * 8, exempt: d.n(2) * 8, tombstones: d.n(2) * 10,
	}
	m.compacted, m.skewed, m.moves = d.oneIn(3), d.oneIn(3), d.oneIn(2)
	if d.oneIn(3) {
		m.topicIDs = []topicIDs{changing, untold}[d.n(2)]
	}
	m.drawPolicy(d)
	// A copy that stands for its owner may be dropped for either reason, also where the log is cut.
	if !m.compacted && d.oneIn(4) {
		m.policy.OnUndeliverable = pipeline.DropUndeliverable
	} else if d.oneIn(6) {
		m.policy.OnUndeliverable = pipeline.StopAtUndeliverable
	}
	m.drawRates(d)
	if !m.compacted {
		m.weights[eventCompact] = 0
	}
	m.first = m.partitions
	if d.oneIn(3) {
		m.first = 1 + d.n(m.partitions)
	}
	if m.apart = m.transactional && d.oneIn(3); !m.apart {
		m.weights[eventBegin], m.weights[eventAway] = 0, 0
	}
	m.passesOver = d.oneIn(4)
	// Where no topic ID is told, a fence of a member that was given up cannot be told from one of a
	// topic that was made again.
	if untold := m.topicIDs != told && !m.transactional; untold || !d.oneIn(3) ||
		m.policy.OnUndeliverable == pipeline.DropUndeliverable {
		m.weights[eventCut] = 0
	}
	return m
}

func (m *mix) drawPolicy(d *dice) {
	if d.oneIn(5) {
		m.policy.Mode = []pipeline.Mode{pipeline.Annotate, pipeline.Observe}[d.n(2)]
	}
	m.policy.OnMissingID = []pipeline.Choice{pipeline.Drop, pipeline.Forward, pipeline.DeadLetter,
		pipeline.Fail}[d.n(4)]
	m.policy.OnConflict = []pipeline.Choice{pipeline.Drop, pipeline.Forward,
		pipeline.DeadLetter}[d.n(3)]
	m.policy.OnTombstone = []pipeline.Choice{pipeline.Drop, pipeline.Forward,
		pipeline.DeadLetter}[d.n(3)]
	if d.oneIn(4) {
		m.policy.OnReplay = pipeline.Forward
	}
	if d.oneIn(5) {
		m.giveUp = ttl / 10
	}
}

// drawRates leaves out one event in three, and two faults in three.
func (m *mix) drawRates(d *dice) {
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
func (m *mix) plain() bool {
	return m.transactional && m.policy.Mode == pipeline.Enforce &&
		m.policy.OnConflict != pipeline.Forward && m.policy.OnReplay == pipeline.Drop &&
		m.giveUp == 0 && m.weights[eventClock] == 0
}
