package claimlog

import (
	"context"
	"slices"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// peer is another process that may keep shards. The sharing's mu guards it.
type peer struct {
	Member
	reached bool         // it answered last
	kept    map[int]bool // as it said last
	stop    context.CancelFunc
	again   context.CancelFunc // ends the present question what it keeps
}

// follow asks a process again and again what it keeps; it answers when that changes. Whatever it
// answers, it is asked no more often than this process looks who keeps what.
func (s *sharing) follow(ctx context.Context, p *peer) {
	for ctx.Err() == nil {
		asked := time.Now()
		err := s.askKept(ctx, p)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.lost(p, err)
			pause.For(ctx, 2*s.o.times.look)
		default:
			pause.For(ctx, s.o.times.look-time.Since(asked))
		}
	}
}

func (s *sharing) askKept(ctx context.Context, p *peer) error {
	q := &request{op: opKept, group: s.group, log: s.identity(), keeper: p.Process,
		limit: s.o.times.kept}
	s.mu.Lock()
	reached := p.reached
	for shard := range p.kept {
		q.sections = append(q.sections, section{shard: shard})
	}
	s.mu.Unlock()
	if !reached {
		q.limit = 0 // it answers at once
	}
	ctx, cancel := context.WithTimeout(ctx, q.limit+s.o.times.kept/2)
	defer cancel()
	s.mu.Lock()
	p.again = cancel
	s.mu.Unlock()
	a, err := s.exchange(ctx, p, q)
	if err != nil {
		return err
	}
	kept := make(map[int]bool)
	for i := range a.sections {
		kept[a.sections[i].shard] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.reached, p.kept = true, kept
	s.tellLocked()
	return nil
}

// exchange sends a request and returns the reply that fits to it.
func (s *sharing) exchange(ctx context.Context, p *peer, q *request) (*reply, error) {
	data, err := s.o.Network.Ask(ctx, p.Address, q.append(nil))
	if err != nil {
		return nil, err
	}
	return parseReply(data, q)
}

// lost takes note that a process does not answer.
func (s *sharing) lost(p *peer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.reached {
		s.log.Warn("a keeper of the claim log does not answer", "group", s.group,
			"instance", p.Instance, "address", p.Address, "error", err)
		s.tellLocked()
	}
	if p.reached, p.kept = false, nil; p.again != nil {
		p.again() // it is asked anew
	}
}

// awaitKept returns what this process keeps, once that is not what the request says. A process that
// ends keeps nothing more that somebody should ask for.
func (s *sharing) awaitKept(ctx context.Context, q *request) (kept []int, err error) {
	known := make([]int, 0, len(q.sections))
	for i := range q.sections {
		known = append(known, q.sections[i].shard)
	}
	slices.Sort(known)
	for {
		s.mu.Lock()
		kept, changed := s.told, s.changed
		s.mu.Unlock()
		if s.life.Err() != nil {
			return nil, errClosed
		}
		if !slices.Equal(kept, known) {
			return kept, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return kept, nil
		case <-s.life.Done():
		}
	}
}

// target is who is asked about a shard: another process, or this one's own index.
type target struct {
	peer  *peer
	space *space
}

// targetLocked chooses who is asked about a shard, but for those that were asked already; nil if
// there is nobody.
func (s *sharing) targetLocked(shard int, asked []target) *target {
	if !s.joined {
		return nil
	}
	var candidates []target
	if space := s.local[shard]; space != nil && space.isCurrent() {
		candidates = append(candidates, target{space: space})
	}
	for _, m := range s.plan[shard] {
		if p := s.peers[m.Process]; p != nil && p.kept[shard] {
			candidates = append(candidates, target{peer: p})
		}
	}
	if !s.leaving[shard].IsZero() && len(candidates) > 1 {
		candidates = append(candidates[1:], candidates[0])
	}
	for _, p := range s.peers { // that kept it before
		if p.kept[shard] && !keeps(s.plan[shard], p.Process) {
			candidates = append(candidates, target{peer: p})
		}
	}
	for _, t := range candidates {
		if !slices.Contains(asked, t) {
			return &t
		}
	}
	return nil
}

// hedgeAfter is for how long a keeper is waited for before another one is asked, too. Where all are
// slow, a second question would only make them slower.
func (s *sharing) hedgeAfter() time.Duration {
	return max(s.o.times.hedge, 4*time.Duration(s.took.Load()))
}

// noteTook takes note how long an answer took, of which the mean counts.
func (s *sharing) noteTook(took time.Duration) {
	mean := s.took.Load()
	s.took.Store(mean + (int64(took)-mean)/16)
}
