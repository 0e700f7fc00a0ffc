package claimlog

import (
	"math"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// known are claims whose IDs were owned at a place of their shard.
type known struct {
	at       []int32
	answers  []dedup.Answer
	ends     []int64 // of the owners, in a scope that is sliding
	until    int64   // the first of them ends then
	removals int64   // of the shard, up to the place
}

// divide says which of the claims for a shard are free where it was read up to, and which are not,
// and which of the latter are due for a renewal. A claim that has ended by now, but not at the last
// block, is not free yet.
func (m *machine) divide(
	shard int, scope *dedup.Scope, claims []dedup.Claim, at []int32,
) (free []int32, k known, d due, err error) {
	s := &m.shards[shard]
	tag := s.tag(scope.Name)
	free = make([]int32, 0, len(at))
	k.until, k.removals = math.MaxInt64, m.removals[shard]
	for _, i := range at {
		m.key = append(append(m.key[:0], tag[:]...), claims[i].ID...)
		owner, ends, found, err := m.get(m.key, s.Time)
		if err != nil {
			return nil, known{}, due{}, err
		}
		if !found {
			free = append(free, i)
			continue
		}
		if m.isDue(shard, scope, &claims[i], owner.owner, ends) {
			d.add(i, claims[i].ID, &owner, ends)
			continue
		}
		if scope.Sliding {
			k.ends = append(k.ends, ends)
		}
		k.at, k.answers = append(k.at, i), append(k.answers, owner.answer(dedup.Exists))
		k.until = min(k.until, ends)
	}
	return free, k, d, nil
}

// stand tells whether the answers to known claims are the same at the last block of the shard.
func (m *machine) stand(shard int, k *known) bool {
	return m.removals[shard] == k.removals && m.shards[shard].Time < k.until
}

// outlasts reports whether the log keeps all blocks behind the last one for as long as a claim of
// this ttl may hold that is made, or renewed, by a block which is judged against them. A reader
// leaves out blocks that live for less than half the margin. Were a release, or an earlier claim,
// to go before the block that comes too late for it, a process that begins to read behind it would
// take that block for one that counts.
func (s *shardState) outlasts(ttl time.Duration) bool {
	return s.Ends == 0 || s.Ends-s.Time >= (ttl+lateness+Margin/2).Milliseconds()
}
