package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
)

var _ dedup.Mover = (*Store)(nil)

// Export implements dedup.Exporter, segment by segment. What it tells is durable.
func (s *Store) Export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	if err := s.export(ctx, scope, page); err != nil {
		return fmt.Errorf("export claims: embedded: %w", err)
	}
	return nil
}

func (s *Store) export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	state, err := s.usable(ctx, scope)
	if err != nil || state == nil {
		return err
	}
	var told []dedup.Standing
	flush := func() error {
		if len(told) == 0 {
			return nil
		}
		err := state.sync(ctx, state.claims.Latest())
		if err == nil {
			err = page(told)
		}
		told = told[:0]
		return err
	}
	err = state.claims.Each(ctx, s.now().UnixMilli(), func(key, value []byte, ends int64) error {
		if ends <= s.now().UnixMilli() {
			return nil
		}
		claim, err := parseRecord(value)
		if err != nil {
			return err
		}
		if told = append(told, claim.standing(key, ends)); len(told) < dedup.StandingPage {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

func (r *claimRecord) standing(key []byte, ends int64) dedup.Standing {
	return dedup.Standing{ID: dedup.ID(key), Owner: r.owner, Fingerprint: r.fingerprint,
		ClaimedAt: time.UnixMilli(r.claimedAt), Ends: time.UnixMilli(ends)}
}

// Find implements dedup.Exporter.
func (s *Store) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) ([]dedup.Standing, error) {
	found, err := s.find(ctx, scope, ids)
	if err != nil {
		return nil, fmt.Errorf("find %d claims: embedded: %w", len(ids), err)
	}
	return found, nil
}

func (s *Store) find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) (found []dedup.Standing, err error) {
	state, err := s.usable(ctx, scope)
	if err != nil || state == nil {
		return nil, err
	}
	reader, now := state.claims.NewReader(), s.now()
	for _, id := range ids {
		claim, ends, held, err := state.get(reader, []byte(id), now)
		if err != nil {
			return nil, err
		}
		if held {
			found = append(found, claim.standing([]byte(id), ends))
		}
	}
	return found, state.sync(ctx, state.claims.Latest())
}

// Import implements dedup.Importer.
func (s *Store) Import(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	if err := s.importAll(ctx, scope, claims, answers); err != nil {
		clear(answers)
		return answers, fmt.Errorf("import %d claims: embedded: %w", len(claims), err)
	}
	return answers, nil
}

var errNotRegistered = errors.New("the scope is not registered")

func (s *Store) importAll(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing, answers []dedup.Answer,
) error {
	state, err := s.usable(ctx, scope)
	if err != nil || len(claims) == 0 {
		return err
	}
	if state == nil {
		return errNotRegistered
	}
	now := s.now()
	for i := range claims {
		state.keepFor(claims[i].Left(now))
	}
	mark, err := state.take(ctx, claims, now, s.behind(now), answers)
	if err != nil {
		return err
	}
	return state.sync(ctx, mark)
}

// behind is by how much the wall clock is known to be behind. As with Claim, that must not end
// claims early, when it is right again.
func (s *Store) behind(now time.Time) time.Duration {
	if behind := s.clock.Now().Sub(now); behind > time.Second { // and not only read later
		return behind
	}
	return 0
}

// take is claim, for claims that another store has made.
func (s *scopeState) take(
	ctx context.Context, claims []dedup.Standing, now time.Time, behind time.Duration,
	answers []dedup.Answer,
) (hashlog.Mark, error) {
	return s.decideAll(ctx, now, answers, func(i int) proposal {
		c := &claims[i]
		return proposal{c.ID, claimRecord{owner: c.Owner, fingerprint: c.Fingerprint,
			claimedAt: c.ClaimedAt.UnixMilli()}, c.Ends.Add(behind).UnixMilli(),
			c.Ends.UnixMilli() <= now.UnixMilli()}
	}, noRenewal)
}
