package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/durable"
)

type scopeName struct{ group, name string }

func nameOf(scope dedup.Scope) scopeName { return scopeName{scope.ConsumerGroup, scope.Name} }

// ensureScope returns the state of a scope and makes one if it is new.
func (s *Store) ensureScope(scope dedup.Scope) (*scopeState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(scope)
	if state := s.scopes[name]; state != nil {
		return state, nil
	}
	record := scopeRecord{ConsumerGroup: name.group, Name: name.name, ID: s.lastID + 1}
	claims, err := s.openClaims(record.ID)
	if err != nil {
		return nil, fmt.Errorf("new scope %s/%s: %w", name.group, name.name, err)
	}
	state := newScopeState(record, claims)
	s.lastID, s.scopes[name] = record.ID, state
	if err := s.saveScopes(); err != nil {
		delete(s.scopes, name)
		return nil, fmt.Errorf("new scope %s/%s: %w", name.group, name.name,
			errors.Join(err, claims.Close()))
	}
	return state, nil
}

// Register implements dedup.Store.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	record, err := s.register(ctx, scope)
	if err != nil {
		return fmt.Errorf("register scope: embedded: %w", err)
	}
	return dedup.CompareScopes(scope,
		dedup.Scope{Buckets: record.Buckets, Extractor: record.Extractor})
}

func (s *Store) register(ctx context.Context, scope dedup.Scope) (scopeRecord, error) {
	if _, err := s.usable(ctx, scope); err != nil {
		return scopeRecord{}, err
	}
	state, err := s.ensureScope(scope)
	if err != nil {
		return scopeRecord{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := state.record; !old.Registered {
		state.record.Registered, state.record.Buckets, state.record.Extractor = true, scope.Buckets,
			scope.Extractor
		if err := s.saveScopes(); err != nil {
			state.record = old
			return scopeRecord{}, err
		}
	}
	return state.record, nil
}

// Registered implements dedup.Store.
func (s *Store) Registered(
	ctx context.Context, scope dedup.Scope,
) (registered dedup.Scope, found bool, err error) {
	if ctx.Err() != nil {
		return dedup.Scope{}, false, fmt.Errorf("read scope: embedded: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.scopes[nameOf(scope)]
	if state == nil || !state.record.Registered {
		return dedup.Scope{}, false, nil
	}
	return dedup.Scope{
		ConsumerGroup: scope.ConsumerGroup, Name: scope.Name, Buckets: state.record.Buckets,
		Extractor: state.record.Extractor,
	}, true, nil
}

// Forget implements dedup.Store.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	if err := s.forget(ctx, scope); err != nil {
		return fmt.Errorf("forget scope: embedded: %w", err)
	}
	return nil
}

// forget counts once scopes.json is written; files that are left by a crash are deleted by the next
// Open.
func (s *Store) forget(ctx context.Context, scope dedup.Scope) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(scope)
	state := s.scopes[name]
	if state == nil {
		return nil
	}
	delete(s.scopes, name)
	if err := s.saveScopes(); err != nil {
		s.scopes[name] = state
		return err
	}
	return errors.Join(state.claims.Close(),
		durable.RemoveDirectory(s.disk, s.claimsPath(state.record.ID)))
}
