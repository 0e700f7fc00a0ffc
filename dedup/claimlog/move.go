package claimlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Mover = (*Store)(nil)

// aheadOf is by how much the log's clock is ahead of this process's: the time of a block without
// claims tells.
func (s *space) aheadOf(
	ctx context.Context, r *reading, scope dedup.Scope,
) (time.Duration, error) {
	return ahead(func() (int64, error) { return s.timeOf(ctx, r, scope) })
}

// ahead is by how much a clock that can be asked for milliseconds is ahead of this process's.
func ahead(ask func() (int64, error)) (time.Duration, error) {
	before := time.Now()
	at, err := ask()
	if err != nil {
		return 0, err
	}
	return time.UnixMilli(at).Sub(before.Add(time.Since(before) / 2)), nil
}

// timeOf is the time of a block without claims that is written for it.
func (s *space) timeOf(ctx context.Context, r *reading, scope dedup.Scope) (int64, error) {
	shard := max(0, s.shard)
	s.mu.Lock()
	seen := r.machine.shards[shard].sight()
	s.mu.Unlock()
	c, h := &call{keep: time.Second}, s.head(r, scope)
	c.parts = []*part{{call: c, id: h.id, shard: shard,
		block: claimsBlock(nil, h, time.Second, seen, nil, nil)}}
	if err := s.send(ctx, r, c); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.machine.shards[shard].Time, nil
}

// Export implements dedup.Exporter by the index, once that is at the end of the log.
func (s *Store) Export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	if err := s.export(ctx, scope, page); err != nil {
		return fmt.Errorf("export claims: claim log: %w", err)
	}
	return nil
}

var errPartial = errors.New("this index keeps some claims only")

func (s *Store) export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	if s.o.Only != nil {
		return errPartial
	}
	var (
		v   *view
		own *space
	)
	defer func() {
		if own != nil {
			own.close()
		}
	}()
	err := s.do(ctx, scope, func(ctx context.Context, log groupLog) (err error) {
		whole, is := log.(*space)
		if !is { // no process has all: they are read from the log
			whole = s.newSpace(scope.ConsumerGroup, allShards)
			own = whole
		}
		v, err = whole.view(ctx, scope)
		return err
	})
	if err != nil {
		return err
	}
	var told []dedup.Standing
	flush := func() (err error) {
		if len(told) > 0 {
			err = page(told)
		}
		told = told[:0]
		return err
	}
	err = v.reading.machine.index.each(ctx, v.now, func(key, value []byte, ends int64) error {
		claim, ours, err := v.standing(key, value, ends)
		if err != nil || !ours {
			return err
		}
		if told = append(told, claim); len(told) < dedup.StandingPage {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err == nil && !v.current() {
		err = errors.New("the log was read anew meanwhile, run it again")
	}
	return err
}

// view is the index at a moment at which it had all that stood in the log.
type view struct {
	space   *space
	reading *reading
	tags    [][tagBytes]byte // of the scope, by shard
	ahead   time.Duration    // of the log's clock
	now     int64            // by that clock
}

func (s *space) view(ctx context.Context, scope dedup.Scope) (*view, error) {
	r, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	ahead, err := s.aheadOf(ctx, r, scope)
	if err != nil {
		return nil, err
	}
	v := &view{space: s, reading: r, ahead: ahead,
		now: time.Now().Add(ahead).UnixMilli()}
	err = s.readAll(ctx, r, allShards, func() error {
		v.tags = r.machine.tags(scope.Name)
		return nil
	})
	return v, err
}

// current reports whether the index is still the one of the view.
func (v *view) current() bool {
	v.space.mu.Lock()
	defer v.space.mu.Unlock()
	return v.space.reading == v.reading
}

// standing reads what the index has; other scopes and notes are not ours.
func (v *view) standing(
	key, value []byte, ends int64,
) (claim dedup.Standing, ours bool, err error) {
	id, _, ours := v.reading.machine.idOf(key, v.tags)
	if !ours {
		return claim, false, nil
	}
	var owner held
	if err := owner.parse(value); err != nil {
		return claim, false, err
	}
	return told(standing{dedup.ID(id), owner, ends}, v.ahead), true, nil
}

// tags of a scope, by shard.
func (m *machine) tags(scope string) (tags [][tagBytes]byte) {
	for i := range m.shards {
		tags = append(tags, m.shards[i].tag(scope))
	}
	return tags
}

// idOf takes an ID out of a key, if that is of the scope with these tags.
func (m *machine) idOf(key []byte, tags [][tagBytes]byte) (id string, shard int, ours bool) {
	if len(key) < tagBytes || string(key[:tagBytes]) == string(make([]byte, tagBytes)) {
		return "", 0, false
	}
	id = string(key[tagBytes:])
	shard = m.agreed.Key.shardOf(id, m.agreed.Shards)
	return id, shard, [tagBytes]byte(key) == tags[shard]
}

// told is a claim that holds, by the clock of a process that the log's is ahead of.
func told(s standing, ahead time.Duration) dedup.Standing {
	return dedup.Standing{ID: s.id, Owner: s.owner, Fingerprint: s.fingerprint,
		ClaimedAt: time.UnixMilli(s.claimedAt), Ends: time.UnixMilli(s.ends).Add(-ahead)}
}

// Find implements dedup.Exporter.
func (s *Store) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) (found []dedup.Standing, err error) {
	err = s.do(ctx, scope, func(ctx context.Context, log groupLog) error {
		ahead, err := log.ahead(ctx, scope)
		if err != nil {
			return err
		}
		all, err := log.find(ctx, scope, ids)
		for _, one := range all {
			found = append(found, told(one, ahead))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find %d claims: claim log: %w", len(ids), err)
	}
	return found, nil
}

func (v *view) find(ids []dedup.ID) (found []standing, err error) {
	v.space.mu.Lock()
	defer v.space.mu.Unlock()
	if v.space.reading != v.reading {
		return nil, v.space.why
	}
	m := v.reading.machine
	for _, id := range ids {
		shard := m.agreed.Key.shardOf(string(id), m.agreed.Shards)
		owner, ends, stands, err := m.get(append(v.tags[shard][:], id...),
			max(v.now, m.shards[shard].Time))
		if err != nil {
			return nil, err
		}
		if stands {
			found = append(found, standing{id, owner, ends})
		}
	}
	return found, nil
}

// Import implements dedup.Importer by blocks of a kind of their own, which versions before it do
// not know: they do not go on beside them.
func (s *Store) Import(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	if len(claims) == 0 {
		return answers, nil
	}
	err := s.do(ctx, scope, func(ctx context.Context, log groupLog) error {
		return importAll(ctx, log, scope, claims, answers)
	})
	if err != nil {
		return answers, fmt.Errorf("import %d claims: claim log: %w", len(claims), err)
	}
	return answers, nil
}

func importAll(
	ctx context.Context, log groupLog, scope dedup.Scope, all []dedup.Standing,
	answers []dedup.Answer,
) error {
	ahead, err := log.ahead(ctx, scope)
	if err != nil {
		return err
	}
	claims, lives := make([]dedup.Claim, len(all)), make([]life, len(all))
	for i := range all {
		claims[i] = dedup.Claim{ID: all[i].ID, Owner: all[i].Owner, Fingerprint: all[i].Fingerprint}
		lives[i] = life{all[i].ClaimedAt.UnixMilli(), all[i].Ends.Add(ahead).UnixMilli()}
	}
	settled := make([]bool, len(all))
	isSettled := func(i int32) bool { return settled[i] }
	for open := places32(all, time.Now()); len(open) > 0; {
		scope.TTL = longest(all, time.Now())
		if err := log.importClaims(ctx, scope, claims, lives, answers, settled, open); err != nil {
			return err
		}
		open = slices.DeleteFunc(open, isSettled)
	}
	return nil
}

// places32 are those of the claims that have not ended.
func places32(claims []dedup.Standing, now time.Time) (at []int32) {
	for i := range claims {
		if claims[i].Left(now) > 0 {
			at = append(at, int32(i))
		}
	}
	return at
}

func longest(claims []dedup.Standing, now time.Time) (left time.Duration) {
	for i := range claims {
		left = max(left, claims[i].Left(now))
	}
	return left
}
