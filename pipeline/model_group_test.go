package pipeline

import (
	"slices"

	"github.com/kdedup/kdedup/consumer"
)

// modelGroup is the consumer group as its coordinator knows it.
//
// A commit is refused unless the member is in the group and knows the present generation
// (ClassicGroup.validateOffsetCommit); which partitions it names is not looked at. The assignment is
// cooperative (KIP-429): a partition goes to its next owner only after the last one gave it up, unless
// the coordinator gave the member up (session or rebalance timeout), which the member learns later.
type modelGroup struct {
	generation int
	members    []*modelSession
	owner      []*modelSession // by partition
	target     []*modelSession // where the present generation wants it
	committed  []pendingOffset // by partition; next is -1 without a commit
	seq        int
	changed    bool // members came or went since the generation was formed
}

// store keeps the commit that came last, whichever becomes stable last
// (OffsetMetadataManager.replayEndTransactionMarker).
func (g *modelGroup) store(o pendingOffset) {
	if at := &g.committed[o.partition]; o.seq > at.seq {
		*at = o
	}
}

func (g *modelGroup) accepts(s *modelSession) bool { return g.acceptsIn(s, s.generation) }

func (g *modelGroup) acceptsIn(s *modelSession, generation int) bool {
	return slices.Contains(g.members, s) && generation == g.generation
}

func (g *modelGroup) remove(s *modelSession) {
	g.members = slices.DeleteFunc(g.members, func(m *modelSession) bool { return m == s })
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

// rebalance forms a new generation. With at_least_once the coordinator waits for members that have a
// batch in hand, and these are told to hurry (OnPartitionsCallbackBlocked).
func (w *modelWorld) rebalance() {
	g := &w.group
	if len(g.members) == 0 || w.waitForBatches() {
		return
	}
	for _, m := range g.members {
		if !m.dead {
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
	for p := range g.target {
		if g.target[p] == nil || w.dice.oneIn(2) {
			g.target[p] = g.members[w.dice.n(len(g.members))]
		}
	}
	w.trace(-1, "generation %d with %d members", g.generation, len(g.members))
}

func (w *modelWorld) waitForBatches() (waiting bool) {
	for _, m := range w.group.members {
		if !w.mix.transactional && m.busy && !m.dead {
			m.interruptBatch()
			waiting = true
		}
	}
	return waiting
}

// move makes one step towards the assignment of the present generation.
func (w *modelWorld) move() {
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
	} else if target := g.target[p]; g.accepts(target) && !target.dead {
		g.owner[p] = target
		target.assign(int32(p))
	}
}

// giveUp lets a member revoke a partition, as soon as it can.
func (w *modelWorld) giveUp(m *modelSession, partition int32) {
	switch {
	case m.dead || !w.group.accepts(m):
	case m.busy && !w.mix.transactional:
		m.interruptBatch()
	default:
		m.land()
		m.drop(partition)
		w.group.owner[partition] = nil
	}
}

// kick gives up a member that was not heard of for too long: one that died, or one that lives.
func (w *modelWorld) kick(deadOnly bool) {
	var some []*modelSession
	for _, m := range w.group.members {
		if m.dead {
			some = []*modelSession{m}
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
	w.trace(m.lane.slot, "given up by the coordinator, dead=%t", m.dead)
}

// notice tells a member that the group has given it up: it loses its partitions and joins again.
func (w *modelWorld) notice() {
	for _, slot := range w.slots {
		s := slot.session
		if s == nil || !s.kicked || s.dead {
			continue
		}
		if s.busy && !w.mix.transactional {
			s.interruptBatch()
			continue
		}
		s.land() // no client joins while a commit is under way
		w.trace(slot.slot, "notices that it lost its partitions")
		for p := range s.held {
			s.drop(int32(p))
		}
		s.kicked, s.generation = false, -1
		w.group.members = append(w.group.members, s)
		w.group.changed = true
		return
	}
}

func (w *modelWorld) learn() {
	for _, m := range w.group.members {
		if m.generation != w.group.generation && !m.dead && !w.group.changed {
			m.generation = w.group.generation
			return
		}
	}
}

// heldPartition is what a session knows of a partition that was assigned to it.
type heldPartition struct {
	assigned   bool
	known      bool  // the group's offset was fetched
	position   int64 // where the next poll goes on
	committed  int64 // where the session returns to when a batch is given back
	fenceKnown bool
	fence      consumer.Fence
}

func (s *modelSession) assign(partition int32) {
	s.held[partition] = heldPartition{assigned: true}
	s.w.trace(s.lane.slot, "partition %d assigned", partition)
}

// drop is OnPartitionsRevoked and OnPartitionsLost.
func (s *modelSession) drop(partition int32) {
	if !s.held[partition].assigned {
		return
	}
	s.held[partition] = heldPartition{}
	s.taken = true
	s.w.trace(s.lane.slot, "partition %d taken away", partition)
	s.interruptBatch()
}
