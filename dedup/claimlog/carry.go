package claimlog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// carry is the work of writing again what holds for longer than the log keeps its block.
type carry struct {
	kept  time.Duration // by the log, of each block
	at    time.Time     // when it began
	ended chan struct{}
	err   error
}

// stale tells that the log keeps blocks for another time now, or that what was written again is to
// be written once more before it goes.
func (c *carry) stale(kept time.Duration) bool {
	return c.kept != kept || time.Since(c.at) >= kept/2
}

// carry sees to it that the log has all claims of a scope that hold, also where it keeps blocks for
// a shorter time than claims were made for: their ttl was longer once, and the log's retention was
// lowered with it. A process that has them in its index writes them again, as renewals that change
// no end.
func (s *space) carry(ctx context.Context, r *reading, scope dedup.Scope) error {
	kept := r.log.Retention()
	if kept == 0 || s.only != nil {
		return nil
	}
	s.mu.Lock()
	if s.reading != r {
		defer s.mu.Unlock()
		return s.why
	}
	c := s.carryLocked(r, scope, kept)
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("claims that hold for longer than the log keeps blocks, %v, are being "+
			"written to it again: %w", kept, context.Cause(ctx))
	}
}

// carryLocked returns the present carry of a scope, which it begins if one is due; nil if none is
// needed.
func (s *space) carryLocked(r *reading, scope dedup.Scope, kept time.Duration) *carry {
	if r.machine.longest() <= (kept - Margin).Milliseconds() {
		delete(s.carries, scope.Name) // what is claimed until the next one is new to it
		return nil
	}
	c := s.carries[scope.Name]
	if c == nil || c.stale(kept) {
		c = &carry{kept: kept, at: time.Now(), ended: make(chan struct{})}
		s.carries[scope.Name] = c
		s.tasks.Go(func() {
			defer close(c.ended)
			if c.err = s.carryAll(r, scope, kept); c.err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.carries, scope.Name)
			}
		})
	}
	return c
}

// carryOn begins the carries that are due, also while nobody claims: the log forgets meanwhile.
func (s *space) carryOn(r *reading) {
	kept := r.log.Retention()
	if kept == 0 || s.only != nil {
		return
	}
	scopes := s.store.scopesOf(s.group)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != r || r.ends != nil {
		return
	}
	for _, scope := range scopes {
		s.carryLocked(r, scope, kept)
	}
}

// longest is for how long any of the claims was put that may hold.
func (m *machine) longest() (longest int64) {
	for i := range m.shards {
		if s := &m.shards[i]; s.Latest > s.Time {
			longest = max(longest, s.Longest)
		}
	}
	return longest
}

func (s *space) carryAll(r *reading, scope dedup.Scope, kept time.Duration) error {
	limit := (kept - Margin).Milliseconds()
	s.mu.Lock()
	done := carried{Times: r.machine.times(s.shard)}
	now := r.machine.progress().oldest()
	tags := r.machine.tags(scope.Name)
	s.mu.Unlock()
	found := make([][]dedup.ID, len(tags))
	total := 0
	flush := func(shard int) error {
		total += len(found[shard])
		err := s.carryPage(r, scope, shard, found[shard], limit)
		found[shard] = found[shard][:0]
		return err
	}
	err := r.machine.index.each(s.life, now, func(key, value []byte, ends int64) error {
		id, shard, ours := r.machine.idOf(key, tags)
		if !ours {
			return nil
		}
		var owner held
		if err := owner.parse(value); err != nil {
			return err
		}
		if ends-owner.claimedAt <= limit {
			return nil
		}
		done.Ends = max(done.Ends, ends)
		if found[shard] = append(found[shard], dedup.ID(id)); len(found[shard]) < carryPage {
			return nil
		}
		return flush(shard)
	})
	for shard := range found {
		if err == nil {
			err = flush(shard)
		}
	}
	if err == nil {
		err = s.store.noteCarried(s.life, scope, done)
	}
	if err != nil {
		return fmt.Errorf("write again what holds for longer than the log keeps blocks: %w", err)
	}
	s.log.Info("claims that hold for longer than the claim log keeps blocks were written again",
		"group", s.group, "scope", scope.Name, "claims", total, "kept", kept)
	return nil
}

const carryPage = 1024

// carryPage writes those of the claims again that still hold.
func (s *space) carryPage(
	r *reading, scope dedup.Scope, shard int, ids []dedup.ID, limit int64,
) error {
	scope.TTL = 0 // they end as they do
	for len(ids) > 0 {
		var (
			d    due
			left []dedup.ID
		)
		s.mu.Lock()
		if s.reading != r {
			defer s.mu.Unlock()
			return s.why
		}
		seen := r.machine.shards[shard].sight()
		for _, id := range ids {
			owner, ends, found, err := r.machine.find(shard, scope.Name, id, 0)
			if err != nil {
				s.mu.Unlock()
				return err
			}
			if found && ends-owner.claimedAt > limit {
				d.add(int32(len(d.at)), id, &owner, ends)
			}
		}
		s.mu.Unlock()
		if len(d.at) == 0 {
			return nil
		}
		c := &call{scope: scope, claims: d.claims, answers: make([]dedup.Answer, len(d.claims))}
		c.renewals(shard, seen, &d, func() head { return s.head(r, scope) })
		ctx, cancel := context.WithTimeout(s.life, s.store.o.Wait)
		err := s.send(ctx, r, c)
		cancel()
		if err != nil {
			return err
		}
		for i, a := range c.answers {
			if a.Outcome == dedup.Undecided {
				left = append(left, d.claims[i].ID)
			}
		}
		ids = left
	}
	return nil
}

// carried is what the registry has of the last carry of a scope. Who makes an index of a log whose
// beginning is gone believes by it that nothing is missing.
type carried struct {
	// of each shard, in milliseconds: what was claimed before, and is not in a block that the log
	// keeps until it ends, was written again behind it
	Times []int64 `json:"times"`
	Ends  int64   `json:"ends"` // of the last claim that was written again
}

func carriedKey(scope string) string { return "carried/" + scope }

// times are those of the shards that are read; one without blocks has nothing that could be
// missing.
func (m *machine) times(shard int) (times []int64) {
	if shard != allShards {
		times = make([]int64, len(m.shards))
		times[shard] = m.shards[shard].Time
		return times
	}
	latest := int64(0)
	for i := range m.shards {
		times = append(times, m.shards[i].Time)
		latest = max(latest, m.shards[i].Time)
	}
	for i := range times {
		if times[i] == 0 {
			times[i] = latest
		}
	}
	return times
}

// noteCarried adds to what others have noted, shard by shard, until it stands: they may do the same
// at the same time.
func (s *Store) noteCarried(ctx context.Context, scope dedup.Scope, done carried) error {
	s.noting.Lock()
	defer s.noting.Unlock()
	for {
		there, err := s.carriedOf(ctx, scope)
		if err != nil {
			return err
		}
		done.Ends = max(done.Ends, there.Ends)
		for i := range done.Times {
			done.Times[i] = max(done.Times[i], there.at(i))
		}
		if slices.Equal(done.Times, there.Times) && done.Ends == there.Ends {
			return nil
		}
		text, err := json.Marshal(done)
		if err != nil {
			return err
		}
		registry := s.o.Opener.Registry(scope.ConsumerGroup)
		if err := replace(ctx, registry, carriedKey(scope.Name), text); err != nil {
			return err
		}
	}
}

// at is the time of a shard; zero where nothing was noted.
func (c *carried) at(shard int) int64 {
	if shard >= len(c.Times) {
		return 0
	}
	return c.Times[shard]
}

// carriedOf is zero where nothing was noted.
func (s *Store) carriedOf(ctx context.Context, scope dedup.Scope) (done carried, err error) {
	text, err := s.o.Opener.Registry(scope.ConsumerGroup).Decided(ctx, carriedKey(scope.Name))
	if err == nil && text != nil {
		err = json.Unmarshal(text, &done)
	}
	if err != nil {
		return carried{}, fmt.Errorf("read what was written again: %w", err)
	}
	return done, nil
}
