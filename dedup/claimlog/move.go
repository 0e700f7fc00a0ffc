package claimlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Mover = (*Store)(nil)

// ahead is by how much the log's clock is ahead of this process's: the time of a block without
// claims tells.
func (s *space) ahead(
	ctx context.Context, r *reading, scope dedup.Scope,
) (time.Duration, error) {
	const shard = 0
	s.mu.Lock()
	seen := r.machine.shards[shard].sight()
	s.mu.Unlock()
	c, h := &call{keep: time.Second}, s.head(r, scope)
	c.parts = []*part{{call: c, id: h.id, shard: shard,
		block: claimsBlock(nil, h, time.Second, seen, nil, nil)}}
	before := time.Now()
	if err := s.send(ctx, r, c); err != nil {
		return 0, err
	}
	took := time.Since(before)
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.UnixMilli(r.machine.shards[shard].Time).Sub(before.Add(took / 2)), nil
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
	var v *view
	err := s.do(ctx, scope, func(ctx context.Context, space *space) (err error) {
		v, err = s.view(ctx, space, scope)
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

func (s *Store) view(ctx context.Context, space *space, scope dedup.Scope) (*view, error) {
	r, err := space.current(ctx)
	if err != nil {
		return nil, err
	}
	ahead, err := space.ahead(ctx, r, scope)
	if err != nil {
		return nil, err
	}
	v := &view{space: space, reading: r, ahead: ahead,
		now: time.Now().Add(ahead).UnixMilli()}
	err = space.readAll(ctx, r, allShards, func() error {
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
	return v.told(id, owner, ends), true, nil
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

func (v *view) told(id string, owner held, ends int64) dedup.Standing {
	return dedup.Standing{ID: dedup.ID(id), Owner: owner.owner, Fingerprint: owner.fingerprint,
		ClaimedAt: time.UnixMilli(owner.claimedAt), Ends: time.UnixMilli(ends).Add(-v.ahead)}
}

// Find implements dedup.Exporter.
func (s *Store) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) (found []dedup.Standing, err error) {
	err = s.do(ctx, scope, func(ctx context.Context, space *space) error {
		v, err := s.view(ctx, space, scope)
		if err != nil {
			return err
		}
		found, err = v.find(ids)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find %d claims: claim log: %w", len(ids), err)
	}
	return found, nil
}

func (v *view) find(ids []dedup.ID) (found []dedup.Standing, err error) {
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
			found = append(found, v.told(string(id), owner, ends))
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
	err := s.do(ctx, scope, func(ctx context.Context, space *space) error {
		return s.importAll(ctx, space, scope, claims, answers)
	})
	if err != nil {
		return answers, fmt.Errorf("import %d claims: claim log: %w", len(claims), err)
	}
	return answers, nil
}

func (s *Store) importAll(
	ctx context.Context, space *space, scope dedup.Scope, claims []dedup.Standing,
	answers []dedup.Answer,
) error {
	r, err := space.current(ctx)
	if err != nil {
		return err
	}
	ahead, err := space.ahead(ctx, r, scope)
	if err != nil {
		return err
	}
	c := importCall(scope, claims, answers, ahead)
	for open := places32(claims, time.Now()); len(open) > 0; open = c.open(open) {
		c.keep = longest(claims, time.Now())
		if err := s.attempt(ctx, space, c, open); err != nil {
			return err
		}
	}
	return nil
}

func importCall(
	scope dedup.Scope, claims []dedup.Standing, answers []dedup.Answer, ahead time.Duration,
) *call {
	scope.Sliding = false // they renew nothing
	c := &call{scope: scope, answers: answers, claims: make([]dedup.Claim, len(claims)),
		lives: make([]life, len(claims)), settled: make([]bool, len(claims))}
	for i := range claims {
		c.claims[i] = dedup.Claim{ID: claims[i].ID, Owner: claims[i].Owner,
			Fingerprint: claims[i].Fingerprint}
		c.lives[i] = life{claims[i].ClaimedAt.UnixMilli(), claims[i].Ends.Add(ahead).UnixMilli()}
	}
	return c
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

// open are those claims that were not dealt with: their block came late, or they were owned when it
// was made and free when it was read back.
func (c *call) open(of []int32) (left []int32) {
	for _, i := range of {
		if !c.settled[i] {
			left = append(left, i)
		}
	}
	return left
}
