package embedded

import (
	"context"
	"fmt"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Amender = (*Store)(nil)

// HasClaims implements dedup.Amender. Claims that have ended count until their file is deleted.
func (s *Store) HasClaims(ctx context.Context, registered dedup.Scope) (bool, error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("look for claims: embedded: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.scopes[nameOf(registered)]
	return state != nil && !state.claims.Empty(), nil
}

// Amend implements dedup.Amender.
func (s *Store) Amend(ctx context.Context, _, scope dedup.Scope) error {
	if ctx.Err() != nil {
		return fmt.Errorf("register scope again: embedded: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.scopes[nameOf(scope)]
	if state == nil {
		return fmt.Errorf("register scope again: embedded: there is no scope %s/%s",
			scope.ConsumerGroup, scope.Name)
	}
	before := state.record
	state.record.Buckets, state.record.Extractor = scope.Buckets, scope.Extractor
	if err := s.saveScopes(); err != nil {
		state.record = before
		return fmt.Errorf("register scope again: embedded: %w", err)
	}
	return nil
}
