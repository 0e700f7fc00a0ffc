package postgres

import (
	"context"
	"fmt"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Amender = (*Store)(nil)

// HasClaims implements dedup.Amender. Claims that have ended count until the sweep has deleted
// them.
func (s *Store) HasClaims(ctx context.Context, registered dedup.Scope) (has bool, err error) {
	err = s.bounded(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+s.options.claimsTable()+
			" WHERE scope = $1)", scopeKey(registered)).Scan(&has)
	})
	if err != nil {
		return false, fmt.Errorf("look for claims of scope %s/%s: postgres: %w",
			registered.ConsumerGroup, registered.Name, explain(ctx, err))
	}
	return has, nil
}

// Amend implements dedup.Amender. It needs the right that Forget needs: to delete from
// dedup_scopes.
func (s *Store) Amend(ctx context.Context, _, scope dedup.Scope) error {
	err := s.bounded(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "DELETE FROM "+s.options.scopesTable()+" WHERE scope = $1",
			scopeKey(scope))
		return err
	})
	if err != nil {
		return fmt.Errorf("register scope %s/%s again: postgres: %w", scope.ConsumerGroup,
			scope.Name, explain(ctx, err))
	}
	return s.Register(ctx, scope)
}
