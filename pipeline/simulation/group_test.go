//go:build !race

package simulation

import (
	"fmt"
	"slices"
)

// group is the consumer group as its coordinator knows it.
//
// A commit is refused unless the member is in the group and knows the present generation
// (ClassicGroup.validateOffsetCommit); which partitions it names is not looked at. The assignment
// is cooperative (KIP-429): a partition goes to its next owner only after the last one gave it up,
// unless the coordinator gave the member up (session or rebalance timeout), which the member learns
// later.
type group struct {
	name       string
	generation int
	members    []*client
	owner      []*client       // by partition
	target     []*client       // where the present generation wants it
	committed  []pendingOffset // by partition; next is -1 without a commit
	seq        int
	changed    bool // members came or went since the generation was formed
}

// store keeps the commit that came last, whichever becomes stable last
// (OffsetMetadataManager.replayEndTransactionMarker).
func (g *group) store(o pendingOffset) {
	if at := &g.committed[o.partition]; o.seq > at.seq {
		*at = o
	}
}

func (g *group) accepts(s *client) bool { return g.acceptsIn(s, s.generation) }

func (g *group) acceptsIn(s *client, generation int) bool {
	return slices.Contains(g.members, s) && generation == g.generation
}

func (g *group) remove(s *client) {
	g.members = slices.DeleteFunc(g.members, func(m *client) bool { return m == s })
	for p := range g.owner {
		if g.owner[p] == s {
			g.owner[p] = nil
		}
		if g.target[p] == s {
			g.target[p] = nil
		}
	}
	g.changed = true
}

// rebalance forms a new generation. With at_least_once the coordinator waits for members that have
// a batch in hand, and these are told to hurry (OnPartitionsCallbackBlocked).
func (w *world) rebalance() {
	g := &w.group
	if len(g.members) == 0 || w.waitForBatches() {
		return
	}
	for _, m := range g.members {
		if !m.closed {
			m.land()
		}
	}
	g.generation++
	g.changed = false
	for _, m := range g.members {
		if w.draining || w.dice.n(6) > 0 {
			m.generation = g.generation
		}
	}
	for p := range w.width {
		if g.target[p] == nil || w.dice.oneIn(2) {
			g.target[p] = g.members[w.dice.n(len(g.members))]
		}
	}
	w.trace(-1, "generation %d with %d members", g.generation, len(g.members))
}

func (w *world) waitForBatches() (waiting bool) {
	for _, m := range w.group.members {
		if !w.mix.transactional && m.busy && !m.closed {
			m.events.Blocked()
			w.quiet()
			waiting = true
		}
	}
	return waiting
}

// move makes one step towards the assignment of the present generation.
func (w *world) move() {
	g := &w.group
	var open []int
	for p := range g.owner {
		if g.owner[p] != g.target[p] && g.target[p] != nil {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return
	}
	p := open[w.dice.n(len(open))]
	if owner := g.owner[p]; owner != nil {
		w.giveUp(owner, int32(p))
	} else if target := g.target[p]; g.accepts(target) && !target.closed && !target.calling {
		g.owner[p] = target
		target.held[p] = held{assigned: true}
		w.trace(target.process.slot, "partition %d assigned", p)
		target.events.Assigned([]int32{int32(p)})
	}
}

// giveUp lets a member revoke a partition, as soon as it can.
func (w *world) giveUp(m *client, partition int32) {
	switch {
	case m.closed || m.calling || !w.group.accepts(m):
	case m.busy && !w.mix.transactional:
		m.events.Blocked()
		w.quiet()
	default:
		m.calling, m.held[partition].revoking = true, true
		w.trace(m.process.slot, "partition %d is to be revoked", partition)
		go func() {
			m.events.Revoked([]int32{partition})
			m.pause("revoked", nil) // the next owner waits for this
			m.calling = false
			if m.held[partition].assigned {
				m.held[partition] = held{}
				w.trace(m.process.slot, "partition %d is revoked", partition)
			}
			if w.group.owner[partition] == m {
				w.group.owner[partition] = nil
			}
		}()
		w.quiet()
	}
}

// kick gives up a member that was not heard of for too long: one that died, or one that lives.
func (w *world) kick(deadOnly bool) {
	var some []*client
	for _, m := range w.group.members {
		if m.closed {
			some = []*client{m}
			break
		}
		if !deadOnly {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		return
	}
	m := some[w.dice.n(len(some))]
	m.kicked = true
	w.group.remove(m)
	w.trace(m.process.slot, "given up by the coordinator, closed=%t", m.closed)
}

// notice tells a member that the group has given it up: it loses its partitions and joins again.
func (w *world) notice() {
	for _, p := range w.processes {
		c := p.client
		if c == nil || !c.kicked || c.closed || c.calling {
			continue
		}
		if c.busy && !w.mix.transactional {
			c.events.Blocked()
			w.quiet()
			continue
		}
		c.land() // no client joins while a commit is under way
		w.trace(p.slot, "notices that it lost its partitions")
		var lost []int32
		for i := range c.held {
			if c.held[i].assigned {
				c.held[i] = held{}
				lost = append(lost, int32(i))
			}
		}
		c.events.Lost(lost)
		w.quiet()
		c.kicked, c.generation = false, -1
		w.group.members = append(w.group.members, c)
		w.group.changed = true
		return
	}
}

func (w *world) learn() {
	for _, m := range w.group.members {
		if m.generation != w.group.generation && !m.closed && !w.group.changed {
			m.generation = w.group.generation
			return
		}
	}
}

// rename is what an operator does while nothing runs: the group gets another name, or its offsets
// have expired. The new group has no offsets.
func (w *world) rename(expired bool) {
	if !expired {
		w.group.name = fmt.Sprint(w.group.name, "'")
	}
	w.trace(-1, "the group %s has no offsets", w.group.name)
	w.saw(sightExpiredOffsets)
	for p := range w.group.committed {
		if at := &w.group.committed[p]; at.next > 0 {
			w.group.seq++
			*at = pendingOffset{int32(p), -1, -1, w.group.seq}
			if w.mix.topicIDs != told {
				w.input[p].rewinds++ // nobody knows whether the fence is of this topic
			}
		}
	}
}
