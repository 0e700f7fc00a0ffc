package embedded

import (
	"context"
	"fmt"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// Claim implements dedup.Store. Calls of one scope decide one after the other, and share their
// syncs.
func (s *Store) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	if err := s.claim(ctx, scope, claims, answers); err != nil {
		clear(answers)
		return answers, fmt.Errorf("claim %d ids: embedded: %w", len(claims), err)
	}
	crashpoint.At("claims-synced")
	return answers, nil
}

func (s *Store) claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, answers []dedup.Answer,
) error {
	state, err := s.usable(ctx, scope)
	if err != nil || len(claims) == 0 {
		return err
	}
	if state == nil {
		if state, err = s.ensureScope(scope); err != nil {
			return err
		}
	}
	state.keepFor(scope.TTL)
	// A wall clock that is behind must not end claims early, when it is right again.
	now, ends := s.now(), s.clock.Now().Add(scope.TTL)
	mark, err := state.claim(ctx, scope, claims, now, ends, answers)
	if err != nil {
		return err
	}
	crashpoint.At("claims-written")
	return state.sync(ctx, mark)
}
