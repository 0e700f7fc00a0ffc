//go:build !race

package simulation

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/consumer"
)

// commit is a commit of offsets on its way to the coordinator, which the session hears of later.
type commit struct {
	attempt    *attempt // nil for one that sets partitions to their fences
	offsets    consumer.Offsets
	generation int // that it was sent in
	landed     bool
	answered   func(error)
}

func (c *commit) answer(w *world, err error) {
	c.landed = true
	c.answered(err)
	w.quiet()
}

// Commit implements consumer.Client. The coordinator answers when the scheduler says so.
func (c *client) Commit(_ context.Context, offsets consumer.Offsets, answered func(error)) {
	c.must(c.commit == nil || c.commit.landed, "a commit while another one is under way")
	// before a check may end the goroutine that waits for it
	c.commit = &commit{c.attempt, offsets, c.generation, false, answered}
	if a := c.attempt; a != nil {
		a.zombie = !c.w.group.accepts(c)
		c.w.assess(a)
	}
	if c.closed {
		c.commit.answer(c.w, errAnswer)
	}
}

// land lets the coordinator answer the commit that is on its way.
func (c *client) land() {
	m := c.commit
	if m == nil || m.landed {
		return
	}
	lost := c.w.fault(faultCommit)
	var err error
	switch {
	case lost && c.w.dice.oneIn(2):
		err = errAnswer
	case !c.w.group.acceptsIn(c, m.generation):
		c.w.saw(sightZombieCommit)
		err = kerr.IllegalGeneration
	default:
		for p := range int32(len(c.held)) {
			at, ok := m.offsets[p]
			if !ok {
				continue
			}
			c.w.group.seq++
			c.w.group.store(pendingOffset{p, at.Offset, at.Epoch, c.w.group.seq})
			if h := &c.held[p]; h.assigned && h.known {
				h.committed, h.epoch = at.Offset, at.Epoch
			}
		}
		if m.attempt != nil {
			c.w.commitAttempt(m.attempt)
		} else {
			c.w.saw(sightPlaced)
		}
		if lost {
			err = errAnswer
		}
	}
	c.w.trace(c.process.slot, "the offsets of %v: %v", m.attempt, err)
	m.answer(c.w, err)
}

// answerCommits is what the group's coordinator does.
func (w *world) answerCommits() {
	for _, p := range w.processes {
		if p.client != nil && !p.client.closed && w.dice.oneIn(2) {
			p.client.land()
		}
	}
}
