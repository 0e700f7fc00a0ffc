package chaos_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is what a fault does.
type kind string

const (
	// To kdedup processes.
	killProcess kind = "kill -9 a process"
	loseIndex   kind = "kill -9 a process, delete its index"
	// SIGSTOP beyond the session timeout, then SIGCONT: a zombie
	freezeProcess kind = "freeze a process"
	rollProcesses kind = "rolling restart" // SIGTERM one after the other
	scale         kind = "scale to 1, 4 and back to 3"

	// To Cassandra nodes.
	killNode   kind = "kill -9 a node"
	pauseNode  kind = "pause a node"
	killNodes  kind = "kill -9 two nodes"
	pauseNodes kind = "pause two nodes"

	// To a Kafka broker.
	restartBroker kind = "restart the broker"
	killBroker    kind = "kill -9 the broker"
	pauseBroker   kind = "pause the broker"

	// To the topics: they get one more partition, the input first, or last.
	growInput   kind = "grow the input, then its outputs"
	growOutputs kind = "grow the outputs, then their input"

	// To the network.
	latency   kind = "latency"
	cut       kind = "cut"
	halfOpen  kind = "half-open"
	slowClose kind = "slow close"
	resetPeer kind = "reset peer"
	bandwidth kind = "little bandwidth"
)

// direction says which bytes a half-open connection swallows. Lost answers are the worse half: the
// server has done what the client does not learn of.
type direction int

const (
	answers direction = iota
	requests
	both
)

func (d direction) String() string {
	return [...]string{"answers", "requests", "answers and requests"}[d]
}

// fault is one disturbance of one of the parts that are disturbed independently of each other.
type fault struct {
	Kind  kind
	After time.Duration // of calm since the last fault of this part ended
	For   time.Duration // until it is healed; that takes a while itself if a server must start
	// a process, a node, or the process whose network it is; everyone means all
	Target int
	Lost   direction // of halfOpen
}

// everyone as the target: the fault hits all.
const everyone = -1

func (f fault) String() string {
	text := string(f.Kind)
	if f.Kind == halfOpen {
		text += fmt.Sprintf(" (%v are lost)", f.Lost)
	}
	if f.Target == everyone {
		return text + ", all"
	}
	return fmt.Sprintf("%s, number %d", text, f.Target)
}

// part is what faults of one track hit. One part has one fault at a time; parts are independent, so
// that every pair of faults meets at some seed.
type part struct {
	name    string
	kinds   []kind
	targets int // faults choose one of 0 … targets-1
}

var networkKinds = []kind{latency, cut, halfOpen, halfOpen, slowClose, resetPeer, bandwidth}

var parts = []part{
	{"processes", []kind{killProcess, freezeProcess, rollProcesses, scale, killProcess,
		freezeProcess}, usualProcesses},
	{"cassandra", append([]kind{killNode, pauseNode, killNodes, pauseNodes, killNode},
		networkKinds...), nodes},
	{"kafka", append([]kind{restartBroker, killBroker, pauseBroker, killBroker}, networkKinds...),
		usualProcesses},
	{"topics", []kind{growInput, growOutputs}, 1},
	{"output", append([]kind{restartBroker, killBroker, pauseBroker, killBroker}, networkKinds...),
		usualProcesses},
	{"keepers", networkKinds, usualProcesses},
}

// partsFor leaves out the faults after which nodes may forget claims with a commit log that is
// written only now and then. With the claims in Kafka no nodes are there. Where they are in a log,
// indexes are lost, and the way to a keeper is disturbed, which has its way to the broker.
func partsFor(o options) []part {
	processes, cassandra := parts[0], parts[1]
	kafka := slices.Clone(parts[2:4])
	if o.apart.two {
		kafka = append(kafka, parts[4])
	}
	if o.share() {
		kafka = append(kafka, parts[5])
	}
	if o.store != inCassandra {
		processes.kinds = append(slices.Clone(processes.kinds), loseIndex)
	}
	if o.store == inKafka {
		return append([]part{processes}, kafka...)
	}
	if o.commitLog == periodic {
		cassandra.kinds = slices.DeleteFunc(slices.Clone(cassandra.kinds), func(k kind) bool {
			return k == killNodes
		})
	}
	return append([]part{processes, cassandra}, kafka...)
}

// schedule is the endless sequence of faults of one part. It is a pure function of part and seed: a
// run is repeated by its seed, as far as servers and processes allow that.
func schedule(p part, seed uint64) iter.Seq[fault] {
	var name uint64
	for _, letter := range []byte(p.name) {
		name = name*31 + uint64(letter)
	}
	return func(yield func(fault) bool) {
		random := rand.New(rand.NewPCG(seed, name))
		for {
			// Every kind comes before one comes again.
			for _, i := range random.Perm(len(p.kinds)) {
				if !yield(draw(random, p, p.kinds[i])) {
					return
				}
			}
		}
	}
}

func draw(random *rand.Rand, p part, k kind) fault {
	f := fault{Kind: k, After: between(random, 1, 6), Target: random.IntN(p.targets),
		Lost: direction(random.IntN(3))}
	if random.IntN(4) == 0 {
		f.Target = everyone
	}
	switch k {
	case freezeProcess, killProcess, loseIndex: // all at once would only be a long pause
		f.Target = max(f.Target, 0)
	}
	limits := durations[k]
	f.For = between(random, limits[0], limits[1])
	return f
}

// durations are how long a fault lasts, at least and at most, in seconds.
var durations = map[kind][2]float64{
	// at once: a successor fences its predecessor; late: the group notices first
	killProcess:   {0, 5},
	loseIndex:     {0, 5},
	freezeProcess: {7, 18},
	rollProcesses: {0, 1}, // between two restarts
	scale:         {2, 5}, // at each size
	killNode:      {0, 6},
	pauseNode:     {2, 14},
	killNodes:     {0, 6},
	pauseNodes:    {3, 12},
	restartBroker: {0, 3},
	killBroker:    {0, 3},
	pauseBroker:   {2, 12},
	latency:       {3, 10},
	cut:           {0.5, 9},
	halfOpen:      {2, 12},
	slowClose:     {3, 8},
	resetPeer:     {2, 6},
	bandwidth:     {3, 8},
	growInput:     {0, 30}, // from the first topic to the last
	growOutputs:   {0, 30},
}

func between(random *rand.Rand, least, most float64) time.Duration {
	seconds := least + (most-least)*random.Float64()
	return time.Duration(seconds * float64(time.Second)).Round(10 * time.Millisecond)
}
