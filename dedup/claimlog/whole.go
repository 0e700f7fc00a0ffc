package claimlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A space answers for the shards that it reads, all of a log or one.
var _ groupLog = (*space)(nil)

func (s *space) await(ctx context.Context) error {
	_, err := s.current(ctx)
	return err
}

func (s *space) claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, answers []dedup.Answer,
	open []int32,
) error {
	return s.claimSeen(ctx, scope, claims, answers, open, nil)
}

// claimSeen claims for another process, which knows how far the shard was read.
func (s *space) claimSeen(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, answers []dedup.Answer,
	open []int32, seen *sight,
) error {
	c := &call{scope: scope, keep: scope.TTL, claims: claims, answers: answers, seen: seen}
	return s.attempt(ctx, c, open)
}

func (s *space) importClaims(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, lives []life,
	answers []dedup.Answer, settled []bool, open []int32,
) error {
	return s.importSeen(ctx, scope, claims, lives, answers, settled, open, nil)
}

func (s *space) importSeen(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, lives []life,
	answers []dedup.Answer, settled []bool, open []int32, seen *sight,
) error {
	scope.Sliding = false // they renew nothing
	c := &call{scope: scope, keep: scope.TTL, claims: claims, answers: answers, lives: lives,
		settled: settled, seen: seen}
	return s.attempt(ctx, c, open)
}

// attempt makes the blocks for those claims of a call that are open, and waits until they are
// decided.
func (s *space) attempt(ctx context.Context, c *call, open []int32) error {
	r, err := s.current(ctx)
	if err != nil {
		return err
	}
	if err := LongEnough(r.log, c.keep); err != nil {
		return err
	}
	if err := s.carry(ctx, r, c.scope); err != nil {
		return err
	}
	for shard, at := range split(r.machine.agreed, c.claims, open) {
		if len(at) == 0 {
			continue
		}
		if !s.reads(shard) {
			return fmt.Errorf("%w %d: of the IDs, some are of shard %d", errOtherShard, s.shard,
				shard)
		}
		if err := s.prepare(r, c, shard, at); err != nil {
			return err
		}
	}
	return s.send(ctx, r, c)
}

// errOtherShard keeps a keeper from answering by an index that cannot have the claims.
var errOtherShard = errors.New("this index has only the claims of shard")

// split says which of the open claims are for which shard.
func split(a agreement, claims []dedup.Claim, open []int32) [][]int32 {
	shards := make([][]int32, a.Shards)
	each := len(open)/a.Shards + len(open)/a.Shards/8 + 4
	for _, i := range open {
		shard := a.Key.shardOf(string(claims[i].ID), a.Shards)
		if shards[shard] == nil {
			shards[shard] = make([]int32, 0, each)
		}
		shards[shard] = append(shards[shard], i)
	}
	return shards
}

// head begins the next block of this process.
func (s *space) head(r *reading, scope dedup.Scope) head {
	return head{version: s.writing.version(), log: r.machine.agreed.ID,
		id:      blockID{s.store.process, s.store.blocks.Add(1)},
		written: s.store.o.now().UnixMilli(), scope: scope.Name}
}

func (s *space) release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	r, err := s.current(ctx)
	if err != nil {
		return err
	}
	a, h := r.machine.agreed, s.head(r, scope)
	c := &call{scope: scope, keep: scope.TTL}
	c.parts = []*part{{call: c, id: h.id, shard: a.Key.shardOf(string(id), a.Shards),
		block: releaseBlock(h, id)}}
	return s.send(ctx, r, c)
}

func (s *space) forget(ctx context.Context, scope dedup.Scope) error {
	r, err := s.current(ctx)
	if err != nil {
		return err
	}
	c := &call{scope: scope, keep: scope.TTL}
	for shard := range r.machine.agreed.Shards {
		if s.reads(shard) {
			h := s.head(r, scope)
			c.parts = append(c.parts, &part{call: c, id: h.id, shard: shard, block: forgetBlock(h)})
		}
	}
	return s.send(ctx, r, c)
}

func (s *space) find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) ([]standing, error) {
	v, err := s.view(ctx, scope)
	if err != nil {
		return nil, err
	}
	return v.find(ids)
}

func (s *space) ahead(ctx context.Context, scope dedup.Scope) (time.Duration, error) {
	r, err := s.current(ctx)
	if err != nil {
		return 0, err
	}
	return s.aheadOf(ctx, r, scope)
}
