//go:build !race

package simulation

import "context"

// With mix.apart the input is on one cluster, and all else on another: group, transactions, fences,
// what is forwarded. They share neither coordinator nor clock. Each is away by itself, and what a
// member hears of one tells it nothing about the other: it goes on with reading while the group
// gives it up, and is assigned partitions that it cannot read yet.
type cluster int

const (
	clusterOfInput cluster = iota
	clusterOfOutput
	clusters
)

// eventsOfOutput are what the coordinators of the output's cluster do, which do nothing while that
// is away.
var eventsOfOutput = map[event]bool{
	eventRebalance: true, eventMove: true, eventLearn: true, eventKick: true, eventNotice: true,
	eventCommits: true, eventTimeout: true, eventMarker: true, eventGrow: true, eventBegin: true,
}

// eventsOfInput are what nobody does while the input's cluster is away.
var eventsOfInput = map[event]bool{
	eventAppend: true, eventCompact: true, eventValidate: true, eventGrow: true,
	eventCut: true,
}

func (w *world) impossible(e event) bool {
	return w.away[clusterOfOutput] && eventsOfOutput[e] ||
		w.away[clusterOfInput] && eventsOfInput[e]
}

// goAway has one of the clusters be away, or back, which it is for most of the time.
func (w *world) goAway() {
	at := w.dice.n(int(clusters))
	if w.away[at] || w.dice.oneIn(3) {
		w.away[at] = !w.away[at]
		w.trace(-1, "%s is away: %t", [...]string{"the input's cluster",
			"the output's cluster"}[at], w.away[at])
	}
}

// reach is what becomes of a request to a cluster that is away: it fails, or waits.
func (c *client) reach(ctx context.Context, what string, at cluster) error {
	if !c.w.away[at] {
		return nil
	}
	c.w.saw([...]sight{sightInputAway, sightOutputAway}[at])
	if c.w.dice.oneIn(2) {
		return errAnswer
	}
	c.pause(what+" waits", func() bool { return ctx.Err() != nil || !c.w.away[at] })
	return ctx.Err()
}

// beginApart tells the client that reads where the group's members begin: the group's client has
// fetched the offsets of what it was assigned.
func (w *world) beginApart() {
	for _, p := range w.processes {
		if c := p.client; w.mix.apart && c != nil && !c.closed && !p.killed &&
			(w.draining || w.dice.oneIn(2)) {
			c.fetchOffsets()
		}
	}
}

// polledApart is the moment between a fetch and what the session makes of it: the group's client
// may lose the partitions meanwhile.
func (c *client) polledApart() {
	if !c.w.mix.apart {
		return
	}
	if c.kicked {
		c.w.saw(sightPolledBlindly)
	}
	before := c.generation
	c.pause("polled", nil)
	if c.generation != before || c.kicked {
		c.w.saw(sightMovedWhilePolled)
	}
}
