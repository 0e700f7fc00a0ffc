package claimlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// inquiry asks the keepers of some shards, all at a time, until each shard was answered for.
type inquiry struct {
	sharing  *sharing
	request  request // without sections
	sections []asking
	take     func(i int, a *answered) // is told the answer about each section, once
	left     int
	results  chan result
	tasks    sync.WaitGroup
	wait     error // why a section waits
	err      error // what is wrong with an answer
}

// asking is a section, and who was asked.
type asking struct {
	section
	asked    []target
	underWay int
	since    time.Time // when somebody was asked last
	done     bool
}

// result is what came of asking one keeper about some of the sections.
type result struct {
	sections []int
	answers  []answered
	remote   bool
	err      error
}

// ask returns once all sections were answered. Its error says what is wrong with one of those that
// were not, or what an answer says.
func (s *sharing) ask(
	ctx context.Context, q request, sections []section, take func(i int, a *answered),
) error {
	n := &inquiry{sharing: s, request: q, take: take, left: len(sections),
		sections: make([]asking, len(sections)), results: make(chan result, 2*len(sections))}
	for i := range sections {
		n.sections[i].section = sections[i]
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer n.tasks.Wait()
	defer cancel(errAnswered)
	return n.run(ctx)
}

var errAnswered = errors.New("another keeper has answered")

func (n *inquiry) run(ctx context.Context) error {
	s := n.sharing
	tick := time.NewTicker(s.hedgeAfter() / 2)
	defer tick.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		why := n.startLocked(ctx)
		s.mu.Unlock()
		if why != nil {
			n.wait = why
		}
		if errors.Is(why, errClosed) {
			return why
		}
		select {
		case r := <-n.results:
			n.note(r)
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(n.err, n.wait, context.Cause(ctx))
		}
		if n.left == 0 {
			return n.err
		}
	}
}

// startLocked asks about what nobody was asked about yet, and once more where a keeper is slow. It
// says why something has to wait.
func (n *inquiry) startLocked(ctx context.Context) (wait error) {
	s := n.sharing
	if s.why != nil {
		return s.why
	}
	whom := make(map[target][]int)
	for i := range n.sections {
		a := &n.sections[i]
		slow := a.underWay > 0 && !n.request.op.once() && time.Since(a.since) >= s.hedgeAfter()
		if a.done || a.underWay > 0 && !slow {
			continue
		}
		t := s.targetLocked(a.shard, a.asked)
		if t == nil && a.underWay == 0 && len(a.asked) > 0 &&
			time.Since(a.since) >= s.o.times.look {
			a.asked = nil // once more from the beginning
			t = s.targetLocked(a.shard, nil)
		}
		if t == nil {
			if a.underWay == 0 {
				wait = s.missingLocked()
			}
			continue
		}
		if slow {
			s.metrics.hedged.Inc()
		}
		a.asked, a.since = append(a.asked, *t), time.Now()
		a.underWay++
		whom[*t] = append(whom[*t], i)
	}
	for t, sections := range whom {
		n.tasks.Go(func() { n.askOne(ctx, t, sections) })
	}
	return wait
}

// askOne asks one keeper, or the index of this process.
func (n *inquiry) askOne(ctx context.Context, t target, sections []int) {
	r := result{sections: sections}
	if t.space != nil {
		for _, i := range sections {
			r.answers = append(r.answers, t.space.perform(ctx, n.request.op, n.request.scope,
				&n.sections[i].section, nil))
		}
	} else {
		r.remote = true
		r.answers, r.err = n.askPeer(ctx, t.peer, sections)
	}
	select {
	case n.results <- r:
	case <-ctx.Done():
	}
}

func (n *inquiry) askPeer(ctx context.Context, p *peer, sections []int) ([]answered, error) {
	s, q := n.sharing, n.request
	q.keeper, q.limit = p.Process, s.store.o.Wait
	if deadline, is := ctx.Deadline(); is {
		q.limit = min(q.limit, time.Until(deadline))
	}
	for _, i := range sections {
		one := n.sections[i].section
		one.seen = s.sightOf(one.shard)
		q.sections = append(q.sections, one)
	}
	if q.op.once() && !n.getTickets(ctx, p, &q) {
		refused := make([]answered, len(sections))
		for i := range refused {
			refused[i].status, refused[i].seen = notKept, notSight
		}
		return refused, nil
	}
	began := time.Now()
	a, err := s.exchange(ctx, p, &q)
	if err == nil {
		s.metrics.ask.Observe(time.Since(began).Seconds())
	}
	s.metrics.asked(p.Instance, err)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, ErrBusy) {
			s.lost(p, err)
		}
		return nil, fmt.Errorf("ask %s: %w", p.Instance, err)
	}
	for i := range a.sections {
		if one := &a.sections[i]; one.status != fine {
			one.why = fmt.Sprintf("%s: %s", p.Instance, one.why)
		}
	}
	return a.sections, nil
}

// sightOf is how far a shard was read, as a keeper said last.
func (s *sharing) sightOf(shard int) sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, known := s.sights[shard]; known {
		return seen
	}
	return notSight
}

// getTickets reports whether the keeper gave a ticket for each section.
func (n *inquiry) getTickets(ctx context.Context, p *peer, q *request) bool {
	ask := *q
	ask.op, ask.sections = opTicket, nil
	for i := range q.sections {
		ask.sections = append(ask.sections, section{shard: q.sections[i].shard})
	}
	a, err := n.sharing.exchange(ctx, p, &ask)
	if err != nil {
		return false
	}
	for i := range a.sections {
		if a.sections[i].status != fine {
			return false
		}
		q.sections[i].ticket = a.sections[i].time
	}
	return true
}

// note takes what one keeper says. Of two answers about a shard the first counts, as both are
// right; what only failed may yet be answered by the other.
func (n *inquiry) note(r result) {
	s := n.sharing
	for at, i := range r.sections {
		a := &n.sections[i]
		a.underWay--
		if a.done {
			continue
		}
		if r.err != nil && n.request.op.once() { // it may have been done
			a.done, n.err = true, r.err
			n.left--
			continue
		}
		if r.err != nil {
			n.wait = r.err
			continue
		}
		one := &r.answers[at]
		if n.request.op.claims() && r.remote {
			s.mu.Lock()
			s.sights[a.shard] = one.seen
			s.mu.Unlock()
		}
		if one.status == notSeen { // once more, with what it says
			a.asked, n.wait = nil, errNotSeen
			continue
		}
		if one.status == notKept || one.status == stale || one.status != fine && a.underWay > 0 {
			n.wait = one.status.err(one.why)
			continue
		}
		a.done = true
		n.left--
		s.noteTook(time.Since(a.since))
		if err := one.status.err(one.why); err != nil {
			n.err = err
		}
		n.take(i, one)
	}
}
