package claimlog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// answer is what this process says to a request of another one. Nobody is told of a shard that this
// process does not read, or of which it has not yet read what the log has.
func (s *Store) answer(ctx context.Context, request []byte) []byte {
	q, err := parseRequest(request)
	if errors.Is(err, errWireVersion) {
		return refusal(unknown, err.Error())
	}
	if err != nil {
		return refusal(failed, err.Error())
	}
	s.mu.Lock()
	sharing, is := s.logs[q.group].(*sharing)
	s.mu.Unlock()
	if !is {
		return refusal(otherLog, "this process has nothing to do with the group")
	}
	ctx, cancel := context.WithTimeout(ctx, q.limit)
	defer cancel()
	return sharing.answer(ctx, q)
}

func refusal(what status, why string) []byte {
	a := reply{op: opClaim, status: what, why: why}
	return a.append(nil)
}

func (s *sharing) answer(ctx context.Context, q *request) []byte {
	a := &reply{op: q.op, log: s.identity(), keeper: s.store.process}
	switch {
	case q.keeper != a.keeper:
		return refusal(otherLog, "another process is meant")
	case q.log != a.log:
		return refusal(otherLog, "another log is meant")
	case q.op == opKept:
		kept, err := s.awaitKept(ctx, q)
		if err != nil {
			return refusal(failed, err.Error())
		}
		for _, shard := range kept {
			a.sections = append(a.sections, answered{shard: shard})
		}
		return a.append(nil)
	}
	s.served.Add(1)
	began := time.Now()
	defer func() { s.metrics.answer.Observe(time.Since(began).Seconds()) }()
	a.sections = make([]answered, len(q.sections))
	var others sync.WaitGroup
	for i := range q.sections {
		if i > 0 {
			others.Go(func() { a.sections[i] = s.perform(ctx, q, &q.sections[i]) })
		}
	}
	if len(q.sections) > 0 {
		a.sections[0] = s.perform(ctx, q, &q.sections[0])
	}
	others.Wait()
	return a.append(make([]byte, 0, 64+32*len(q.sections)))
}

// perform does what is asked of one shard by the index of this process.
func (s *sharing) perform(ctx context.Context, q *request, asked *section) answered {
	space := s.keeping(asked.shard)
	if space == nil {
		return answered{shard: asked.shard, status: notKept, seen: notSight}
	}
	switch {
	case q.op == opTicket:
		return answered{shard: asked.shard, time: s.tickets.issue(s.store.o.now())}
	case q.op.once() && !s.tickets.take(asked.ticket, s.store.o.now()):
		return answered{shard: asked.shard, status: stale}
	case !q.op.claims():
		return space.perform(ctx, q.op, q.scope, asked, nil)
	case asked.seen.Next < 0:
		return answered{shard: asked.shard, status: notSeen, seen: space.sight(asked.shard),
			answers: make([]dedup.Answer, len(asked.claims))}
	}
	a := space.perform(ctx, q.op, q.scope, asked, &asked.seen)
	a.seen = space.sight(asked.shard)
	return a
}

// sight is how far a shard was read; nothing if it is not read now.
func (s *space) sight(shard int) sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading == nil {
		return notSight
	}
	return s.reading.machine.shards[shard].sight()
}

// notSight is of a shard of which it is not known how far it was read.
var notSight = sight{Position: notRead}

func (s *space) perform(
	ctx context.Context, op operation, scope dedup.Scope, asked *section, seen *sight,
) answered {
	a := answered{shard: asked.shard}
	scope.ConsumerGroup = s.group
	var err error
	if len(asked.claims) > 0 {
		a.answers = make([]dedup.Answer, len(asked.claims))
	}
	open := make([]int32, len(asked.claims))
	for i := range open {
		open[i] = int32(i)
	}
	switch op {
	case opClaim:
		err = s.claimSeen(ctx, scope, asked.claims, a.answers, open, seen)
	case opImport:
		a.settled = make([]bool, len(asked.claims))
		err = s.importSeen(ctx, scope, asked.claims, asked.lives, a.answers, a.settled, open, seen)
	case opForget:
		err = s.forget(ctx, scope)
	case opTime:
		var r *reading
		if r, err = s.current(ctx); err == nil {
			a.time, err = s.timeOf(ctx, r, scope)
		}
	case opFind:
		err = s.performFind(ctx, scope, asked, &a)
	case opLookup, opRelease:
		err = s.performOne(ctx, op, scope, asked, &a)
	}
	if err != nil {
		a.status, a.why = failed, err.Error()
	}
	return a
}

// performOne looks up, or releases, each of the IDs.
func (s *space) performOne(
	ctx context.Context, op operation, scope dedup.Scope, asked *section, a *answered,
) (err error) {
	if err := s.ofThisShard(ctx, asked); err != nil {
		return err
	}
	for i := range asked.claims {
		id := asked.claims[i].ID
		if op == opRelease {
			err = s.release(ctx, scope, id)
		} else {
			a.answers[i], err = s.lookup(ctx, scope, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *space) performFind(
	ctx context.Context, scope dedup.Scope, asked *section, a *answered,
) error {
	if err := s.ofThisShard(ctx, asked); err != nil {
		return err
	}
	ids := make([]dedup.ID, len(asked.claims))
	for i := range ids {
		ids[i] = asked.claims[i].ID
	}
	found, err := s.find(ctx, scope, ids)
	a.ends = make([]int64, len(ids))
	stand := make(map[dedup.ID]*standing, len(found))
	for i := range found {
		stand[found[i].id] = &found[i]
	}
	for i, id := range ids {
		if one := stand[id]; one != nil {
			a.answers[i], a.ends[i] = one.answer(dedup.Exists), one.ends
		}
	}
	return err
}

// ofThisShard refuses IDs of another shard, of which the index knows nothing.
func (s *space) ofThisShard(ctx context.Context, asked *section) error {
	r, err := s.current(ctx)
	if err != nil {
		return err
	}
	a := r.machine.agreed
	for i := range asked.claims {
		if shard := a.Key.shardOf(string(asked.claims[i].ID), a.Shards); !s.reads(shard) {
			return errOtherShard
		}
	}
	return nil
}
