package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/consumer"
)

// modelAtLeastOnce ends batches as consumer.AtLeastOnce does.
type modelAtLeastOnce struct{ *modelSession }

var _ Session = modelAtLeastOnce{}

// modelCommit is a commit of offsets on its way to the coordinator, which the lane hears of later.
type modelCommit struct {
	attempt    *modelAttempt
	generation int // that it was sent in
	landed     bool
	err        error // after landed
}

func (c *modelCommit) failed() bool { return c != nil && c.landed && c.err != nil }

// land lets the coordinator answer the commit that is on its way.
func (s *modelSession) land() {
	c := s.commit
	if c == nil || c.landed {
		return
	}
	c.landed = true
	lost := s.w.fault(faultCommit)
	switch {
	case lost && s.w.dice.oneIn(2):
		c.err = errModelAnswer
	case !s.w.group.acceptsIn(s, c.generation):
		s.w.saw(sightZombieCommit)
		c.err = kerr.IllegalGeneration
	default:
		for _, span := range c.attempt.batch.Spans {
			s.w.group.seq++
			s.w.group.store(pendingOffset{span.Partition, span.Next, s.w.group.seq})
		}
		s.w.settle(c.attempt)
		if lost {
			c.err = errModelAnswer
		}
	}
	s.w.trace(s.lane.slot, "the offsets of %v: %v", c.attempt, c.err)
}

// heard waits for the commit and tells once what became of it.
func (s *modelSession) heard() error {
	s.land()
	c := s.commit
	s.commit = nil
	if c == nil || c.err == nil {
		return nil
	}
	return fmt.Errorf("commit offsets: %w", c.err)
}

// answerCommits is what the group's coordinator does.
func (w *modelWorld) answerCommits() {
	for _, slot := range w.slots {
		if slot.session != nil && w.dice.oneIn(2) {
			slot.session.land()
		}
	}
}

// Poll implements Session.
func (s modelAtLeastOnce) Poll(ctx context.Context) (*consumer.Batch, error) {
	b, err := s.modelSession.Poll(ctx)
	if b != nil && s.commit != nil && !s.commit.landed {
		s.w.saw(sightPolledAhead)
	}
	return b, err
}

// Begin implements Session.
func (s modelAtLeastOnce) Begin(_ context.Context, b *consumer.Batch) error {
	s.must(s.attempt != nil && s.attempt.batch == b && !s.begun, "begin of a batch that is not in hand")
	s.lane.pause()
	if err := s.heard(); err != nil {
		return err
	}
	s.begun = true
	return nil
}

// Commit implements Session: fences, then offsets. These are sent before a rebalance may begin.
func (s modelAtLeastOnce) Commit(ctx context.Context, b *consumer.Batch) error {
	s.must(s.begun && s.attempt.batch == b, "commit of a batch that was not begun")
	s.produceFences(b)
	if err := s.Flush(ctx); err != nil {
		return fmt.Errorf("flush fences: %w", err)
	}
	if s.fenceFailed != nil {
		return fmt.Errorf("write fence: %w", s.fenceFailed)
	}
	s.attempt.zombie = !s.w.group.accepts(s.modelSession)
	s.w.assess(s.attempt)
	s.commit = &modelCommit{attempt: s.attempt, generation: s.generation}
	s.lane.pause()
	s.committed(b)
	return nil
}

// Abort implements Session. What was produced is not taken back.
func (s modelAtLeastOnce) Abort(_ context.Context, _ *consumer.Batch, why error) error {
	s.must(s.attempt != nil, "abort without a batch")
	s.w.saw(sightGivenBack)
	s.w.trace(s.lane.slot, "gives back %v: %v", s.attempt, why)
	s.lane.pause()
	if err := s.heard(); err != nil {
		return errors.Join(err, why)
	}
	s.goBack()
	s.reset()
	return fmt.Errorf("%w: %w", consumer.ErrAborted, why)
}
