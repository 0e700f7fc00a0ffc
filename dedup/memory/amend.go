package memory

import (
	"context"
	"fmt"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Amender = (*Store)(nil)

// HasClaims implements dedup.Amender.
func (s *Store) HasClaims(ctx context.Context, registered dedup.Scope) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, registered); err != nil {
		return false, fmt.Errorf("look for claims: %w", err)
	}
	space, found := s.scopes[scopeName{registered.ConsumerGroup, registered.Name}]
	return found && len(space.claims) > 0, nil
}

// Amend implements dedup.Amender.
func (s *Store) Amend(ctx context.Context, _, scope dedup.Scope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return fmt.Errorf("register scope again: %w", err)
	}
	s.spaceLocked(scope).registered = &scope
	return nil
}
