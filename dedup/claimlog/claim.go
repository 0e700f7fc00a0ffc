package claimlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// call is one call that waits for its blocks. Its space's mu guards it until it has ended.
type call struct {
	scope   dedup.Scope
	keep    time.Duration // how long its claims live at most
	claims  []dedup.Claim
	answers []dedup.Answer
	lives   []life // of the claims, if they are imported
	seen    *sight // of whoever claims, if that is another process
	settled []bool // which of those were dealt with; nil: nobody asks
	parts   []*part
	left    int // parts that are not done
	err     error
	ended   chan struct{} // closed when none is left
}

// part is one block of a call.
type part struct {
	call  *call
	id    blockID
	shard int
	at    []int32 // the claims in the block, among those of the call
	known known   // claims that are not in it, which are answered once the block is read back
	block []byte
	stood time.Time // when the log had it; zero: not yet
}

func (p *part) tell(claim int, a dedup.Answer) {
	if claim < len(p.at) {
		p.call.settle(p.at[claim], a)
	}
}

func (c *call) settle(claim int32, a dedup.Answer) {
	c.answers[claim] = a
	if c.settled != nil {
		c.settled[claim] = true
	}
}

// answerKnown answers what the block only asks: it was applied just now. An ID that is free by now,
// or whose claim is due for a renewal, stays undecided.
func (p *part) answerKnown(m *machine) error {
	c, stand := p.call, m.stand(p.shard, &p.known)
	for i, at := range p.known.at {
		answer, ends := p.known.answers[i], int64(0)
		if p.known.ends != nil {
			ends = p.known.ends[i]
		}
		if !stand {
			owner, until, found, err := m.find(p.shard, c.scope.Name, c.claims[at].ID, 0)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			answer, ends = owner.answer(dedup.Exists), until
		}
		if !m.isDue(p.shard, &c.scope, &c.claims[at], answer.Owner, ends) {
			c.settle(at, answer)
		}
	}
	return nil
}

// reopenDue leaves copies undecided that have lost, in this block, against a claim which is due for
// a renewal: they could not know of it, and the block does not renew it.
func (p *part) reopenDue(m *machine) error {
	c := p.call
	if !c.scope.Sliding {
		return nil
	}
	for _, at := range p.at {
		if c.answers[at].Outcome != dedup.Exists {
			continue
		}
		owner, ends, found, err := m.find(p.shard, c.scope.Name, c.claims[at].ID, 0)
		if err != nil {
			return err
		}
		if found && m.isDue(p.shard, &c.scope, &c.claims[at], owner.owner, ends) {
			c.answers[at] = dedup.Answer{}
		}
	}
	return nil
}

// done is called once for each part. After an error its claims are undecided.
func (p *part) done(err error) {
	c := p.call
	if err != nil {
		c.err = err
		for _, list := range [][]int32{p.at, p.known.at} {
			for _, at := range list {
				c.answers[at] = dedup.Answer{}
			}
		}
	}
	if c.left--; c.left == 0 {
		close(c.ended)
	}
}

// A block ends before it is so large that a log may refuse it.
const (
	mostClaims     = 4096
	mostClaimBytes = 256 << 10 // of IDs
)

// blockful is how many of the claims at places in a list go into one block, and the bytes of their
// IDs.
func blockful(claims []dedup.Claim, at []int32) (n, bytes int) {
	for n < len(at) && n < mostClaims &&
		(n == 0 || bytes+len(claims[at[n]].ID) <= mostClaimBytes) {
		bytes += len(claims[at[n]].ID)
		n++
	}
	return n, bytes
}

// prepare makes the blocks for the claims of a shard.
func (s *space) prepare(r *reading, c *call, shard int, at []int32) error {
	s.mu.Lock()
	if s.reading != r {
		defer s.mu.Unlock()
		return s.why
	}
	free, known, due, err := r.machine.divide(shard, &c.scope, c.claims, at)
	last := &r.machine.shards[shard]
	seen, outlasts := c.sightOf(last), last.outlasts(c.keep)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	name := func() head { return s.head(r, c.scope) }
	if !outlasts { // a block without claims comes first, and what follows stays
		h := name()
		c.parts = append(c.parts, &part{call: c, id: h.id, shard: shard,
			block: claimsBlock(nil, h, c.scope.TTL, seen, nil, nil)})
		return nil
	}
	if c.renewals(shard, seen, &due, name); len(due.at) == len(at) {
		return nil
	}
	for {
		n, bytes := blockful(c.claims, free)
		h := name()
		p := &part{call: c, id: h.id, shard: shard, at: free[:n]}
		memory := make([]byte, 0, 128+bytes+n*24)
		if c.lives == nil {
			p.block = claimsBlock(memory, h, c.scope.TTL, seen, c.claims, p.at)
		} else {
			p.block = importBlock(memory, h, seen, c.claims, c.lives, p.at)
		}
		c.parts = append(c.parts, p)
		if free = free[n:]; len(free) == 0 {
			p.known = known
			return nil
		}
	}
}

// sightOf is how far a shard was read before the call began. A keeper takes that of the process
// that asks: a request may come long after it was given up, as where the keeper was stopped
// meanwhile. By what has happened since then, and by its time, its block is known to be late.
func (c *call) sightOf(last *shardState) sight {
	seen := last.sight()
	if c.seen != nil && c.seen.Next < seen.Next {
		return *c.seen
	}
	return seen
}

// send appends the blocks of a call, and waits until all were read back or failed, or ctx ends.
// What was not read back by then is undecided: it may still come to stand in the log.
func (s *space) send(ctx context.Context, r *reading, c *call) error {
	c.left, c.ended = len(c.parts), make(chan struct{})
	s.mu.Lock()
	if s.reading != r {
		err := s.why
		s.mu.Unlock()
		return err
	}
	for _, p := range c.parts {
		s.pending[p.id] = p
	}
	s.mu.Unlock()
	began := time.Now()
	for _, p := range c.parts {
		r.log.Append(p.shard, p.block, c.keep+Margin, func(err error) {
			if err != nil {
				s.giveUp(fmt.Errorf("append to the log: %w", err), p)
				return
			}
			s.metrics.appended.Observe(time.Since(began).Seconds())
			s.standing(r, p)
		})
	}
	crashpoint.At("blocks-appended")
	select {
	case <-c.ended:
	case <-ctx.Done():
		s.giveUp(context.Cause(ctx), c.parts...)
		<-c.ended
	}
	return c.err
}

// giveUp leaves those of the parts undecided that still wait.
func (s *space) giveUp(err error, parts ...*part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		if s.pending[p.id] == p {
			delete(s.pending, p.id)
			p.done(err)
		}
	}
}

// current returns the reading once it is at the end of the log.
func (s *space) current(ctx context.Context) (r *reading, err error) {
	err = s.wait(ctx, func() (bool, error) {
		r = s.reading
		switch {
		case r == nil && errors.Is(s.why, errClosed):
			return false, s.why
		case r == nil:
			return false, nil
		}
		return r.ends == nil, nil
	})
	return r, err
}

// wait returns when the condition holds, which is asked with mu held.
func (s *space) wait(ctx context.Context, holds func() (bool, error)) error {
	for {
		s.mu.Lock()
		ok, err := holds()
		changed, why := s.changed, s.stateLocked()
		s.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", why, context.Cause(ctx))
		}
	}
}

// stateLocked says what a call waits for.
func (s *space) stateLocked() string {
	r := s.reading
	if r == nil {
		return s.why.Error()
	}
	return fmt.Sprintf("the claim log is being read, %d of %d blocks to go", r.left(), r.blocks)
}

// allShards is for readAll.
const allShards = -1

// readAll waits until all is applied that a shard has now, or all shards, and looks with mu held.
func (s *space) readAll(ctx context.Context, r *reading, shard int, look func() error) error {
	s.mu.Lock()
	positions := s.leaving(r.machine.positions())
	s.mu.Unlock()
	spans, err := r.log.Spans(ctx, positions)
	if err != nil {
		return err
	}
	return s.wait(ctx, func() (bool, error) {
		if s.reading != r {
			return false, s.why
		}
		for i := range spans {
			if (shard == allShards || shard == i) && r.machine.shards[i].Next < spans[i].End {
				return false, nil
			}
		}
		return true, look()
	})
}

// lookup waits until all is applied that the log has now, and looks into the index. Whether a claim
// has ended, the log's clock says, as it does for a copy that comes now.
func (s *space) lookup(
	ctx context.Context, scope dedup.Scope, id dedup.ID,
) (answer dedup.Answer, err error) {
	r, err := s.current(ctx)
	if err != nil {
		return dedup.Answer{}, err
	}
	shard := r.machine.agreed.Key.shardOf(string(id), r.machine.agreed.Shards)
	timed := false
	err = s.readAll(ctx, r, shard, func() (err error) {
		var now int64
		now, timed = s.clock.now()
		answer, err = r.machine.lookup(shard, scope.Name, id, now)
		return err
	})
	if err != nil || answer.Outcome == dedup.Undecided || timed {
		return answer, err
	}
	_, err = s.aheadOf(ctx, r, scope)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != r {
		return dedup.Answer{}, s.why
	}
	now, timed := s.clock.now()
	if !timed { // who may only read has to go by its own clock
		s.log.Debug("the log's clock is not known", "group", s.group, "error", err)
		now = s.store.o.now().UnixMilli()
	}
	return r.machine.lookup(shard, scope.Name, id, now)
}
