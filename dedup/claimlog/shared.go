package claimlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// What a store does with a log, by asking the keepers of its shards.
var _ groupLog = (*sharing)(nil)

// agreement waits until it is known.
func (s *sharing) agreement(ctx context.Context) (agreement, error) {
	for {
		s.mu.Lock()
		agreed, why, changed := s.agreed, s.why, s.changed
		s.mu.Unlock()
		if why == nil || errors.Is(why, errClosed) {
			return agreed, why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return agreed, errors.Join(why, context.Cause(ctx))
		}
	}
}

func (s *sharing) request(op operation, scope dedup.Scope) request {
	return request{op: op, group: s.group, log: s.identity(), scope: scope}
}

// by divides claims by their shards, and says where each was.
func by(a agreement, claims []dedup.Claim, lives []life, open []int32) (
	sections []section, at [][]int32,
) {
	for shard, places := range split(a, claims, open) {
		for len(places) > 0 {
			n, _ := blockful(claims, places)
			one := section{shard: shard, claims: make([]dedup.Claim, n)}
			for i, place := range places[:n] {
				one.claims[i] = claims[place]
				if lives != nil {
					one.lives = append(one.lives, lives[place])
				}
			}
			sections, at, places = append(sections, one), append(at, places[:n]), places[n:]
		}
	}
	return sections, at
}

func (s *sharing) claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, answers []dedup.Answer,
	open []int32,
) error {
	return s.claimAll(ctx, opClaim, scope, claims, nil, answers, nil, open)
}

func (s *sharing) importClaims(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, lives []life,
	answers []dedup.Answer, settled []bool, open []int32,
) error {
	return s.claimAll(ctx, opImport, scope, claims, lives, answers, settled, open)
}

func (s *sharing) claimAll(
	ctx context.Context, op operation, scope dedup.Scope, claims []dedup.Claim, lives []life,
	answers []dedup.Answer, settled []bool, open []int32,
) error {
	agreed, err := s.agreement(ctx)
	if err != nil {
		return err
	}
	sections, at := by(agreed, claims, lives, open)
	return s.ask(ctx, s.request(op, scope), sections, func(i int, a *answered) {
		for j, place := range at[i] {
			if j >= len(a.answers) {
				return
			}
			answers[place] = a.answers[j]
			if settled != nil && a.settled != nil {
				settled[place] = a.settled[j]
			}
		}
	})
}

// askIDs asks about IDs, each in its shard.
func (s *sharing) askIDs(
	ctx context.Context, op operation, scope dedup.Scope, ids []dedup.ID,
	take func(id dedup.ID, a dedup.Answer, ends int64),
) error {
	agreed, err := s.agreement(ctx)
	if err != nil {
		return err
	}
	claims, open := make([]dedup.Claim, len(ids)), make([]int32, len(ids))
	for i, id := range ids {
		claims[i].ID, open[i] = id, int32(i)
	}
	sections, _ := by(agreed, claims, nil, open)
	return s.ask(ctx, s.request(op, scope), sections, func(i int, a *answered) {
		for j := range a.answers {
			ends := int64(0)
			if a.ends != nil {
				ends = a.ends[j]
			}
			take(sections[i].claims[j].ID, a.answers[j], ends)
		}
	})
}

func (s *sharing) lookup(
	ctx context.Context, scope dedup.Scope, id dedup.ID,
) (answer dedup.Answer, err error) {
	err = s.askIDs(ctx, opLookup, scope, []dedup.ID{id},
		func(_ dedup.ID, a dedup.Answer, _ int64) { answer = a })
	return answer, err
}

func (s *sharing) release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	return s.askIDs(ctx, opRelease, scope, []dedup.ID{id}, func(dedup.ID, dedup.Answer, int64) {})
}

func (s *sharing) find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) (found []standing, err error) {
	err = s.askIDs(ctx, opFind, scope, ids, func(id dedup.ID, a dedup.Answer, ends int64) {
		if a.Outcome == dedup.Exists {
			found = append(found, standing{id,
				held{a.Owner, a.Fingerprint, a.ClaimedAt.UnixMilli(), 0}, ends})
		}
	})
	return found, err
}

func (s *sharing) forget(ctx context.Context, scope dedup.Scope) error {
	agreed, err := s.agreement(ctx)
	if err != nil {
		return err
	}
	sections := make([]section, agreed.Shards)
	for shard := range sections {
		sections[shard].shard = shard
	}
	return s.ask(ctx, s.request(opForget, scope), sections, func(int, *answered) {})
}

func (s *sharing) ahead(ctx context.Context, scope dedup.Scope) (time.Duration, error) {
	if _, err := s.agreement(ctx); err != nil {
		return 0, err
	}
	return ahead(func() (at int64, err error) {
		err = s.ask(ctx, s.request(opTime, scope), []section{{shard: s.nearest()}},
			func(_ int, a *answered) { at = a.time })
		return at, err
	})
}

// nearest is a shard that this process keeps, or any.
func (s *sharing) nearest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.told) > 0 {
		return s.told[0]
	}
	return 0
}

func (s *sharing) state() State {
	s.mu.Lock()
	state := State{Group: s.group, Err: s.why}
	if s.why == nil {
		err := s.missingLocked()
		// Who restarts keepers one after the other must know when the next one may go.
		if unread := s.unreadLocked(); err == nil && !s.has {
			err = fmt.Errorf("this process has not read what it is to keep yet: %d of %d shards to "+
				"go", unread, s.agreed.Shards)
		}
		if state.AtEnd = err == nil; !state.AtEnd {
			state.Err = err
		}
	}
	state.Keepers = s.keepersLocked()
	spaces := make([]*space, 0, len(s.local))
	for _, space := range s.local {
		spaces = append(spaces, space)
	}
	s.mu.Unlock()
	for _, space := range spaces {
		one := space.state()
		state.Left, state.Of = state.Left+one.Left, state.Of+one.Of
		state.Bytes, state.Claims = state.Bytes+one.Bytes, state.Claims+one.Claims
	}
	return state
}

// keepersLocked says who keeps what.
func (s *sharing) keepersLocked() (keepers []Keeper) {
	for _, m := range s.members {
		k := Keeper{Instance: m.Instance, Address: m.Address, Keeps: m.Keeps}
		if m.Process == s.store.process {
			k.Self, k.Reached = true, true
			k.Shards = append(k.Shards, s.told...)
		} else if p := s.peers[m.Process]; p != nil {
			k.Reached = p.reached
			for shard := range s.agreed.Shards {
				if p.kept[shard] {
					k.Shards = append(k.Shards, shard)
				}
			}
		}
		keepers = append(keepers, k)
	}
	return keepers
}
