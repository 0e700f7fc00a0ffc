package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kdedup/kdedup/dedup"
)

// Register implements dedup.Store by a row of dedup_scopes that is inserted once.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	err := s.bounded(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "INSERT INTO "+s.options.scopesTable()+
			" (scope, consumer_group, topic, buckets, extractor) SELECT $1::bigint, $2::text, "+
			"$3::text, $4::int, $5::text FROM "+durable+" ON CONFLICT (scope) DO NOTHING",
			scopeKey(scope), scope.ConsumerGroup, scope.Name, scope.Buckets, scope.Extractor)
		return err
	})
	if err != nil {
		return fmt.Errorf("register scope %s/%s: postgres: %w", scope.ConsumerGroup, scope.Name,
			explain(ctx, err))
	}
	registered, found, err := s.Registered(ctx, scope)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("register scope %s/%s: postgres: the row that was inserted is not there",
			scope.ConsumerGroup, scope.Name)
	}
	return dedup.CompareScopes(scope, registered)
}

// Registered implements dedup.Store.
func (s *Store) Registered(
	ctx context.Context, scope dedup.Scope,
) (registered dedup.Scope, found bool, err error) {
	err = s.bounded(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "SELECT consumer_group, topic, buckets, extractor FROM "+
			s.options.scopesTable()+" WHERE scope = $1",
			scopeKey(scope)).Scan(&registered.ConsumerGroup, &registered.Name, &registered.Buckets,
			&registered.Extractor)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return dedup.Scope{}, false, nil
	}
	if err == nil && (registered.ConsumerGroup != scope.ConsumerGroup ||
		registered.Name != scope.Name) {
		err = fmt.Errorf("scope %s/%s has the same number %d: name one of them otherwise",
			registered.ConsumerGroup, registered.Name, scopeKey(scope))
	}
	if err != nil {
		return dedup.Scope{}, false, fmt.Errorf("read scope %s/%s: postgres: %w",
			scope.ConsumerGroup, scope.Name, explain(ctx, err))
	}
	return registered, true, nil
}

// forgetBatch keeps each statement of Forget well within its time.
const forgetBatch = 10_000

// Forget implements dedup.Store.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	for deleted := int64(forgetBatch); deleted == forgetBatch; {
		err := s.bounded(ctx, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, inIndexOrder); err != nil {
					return err
				}
				tag, err := tx.Exec(ctx, s.sql.forget, scopeKey(scope), forgetBatch)
				deleted = tag.RowsAffected()
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("forget scope %s/%s: postgres: %w", scope.ConsumerGroup, scope.Name,
				explain(ctx, err))
		}
	}
	err := s.bounded(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "DELETE FROM "+s.options.scopesTable()+" WHERE scope = $1",
			scopeKey(scope))
		return err
	})
	if err != nil {
		return fmt.Errorf("forget scope %s/%s: postgres: %w", scope.ConsumerGroup, scope.Name,
			explain(ctx, err))
	}
	return nil
}
