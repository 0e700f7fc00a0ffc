package cassandra

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Amender = (*Store)(nil)

// HasClaims implements dedup.Amender, bucket by bucket.
func (s *Store) HasClaims(ctx context.Context, registered dedup.Scope) (bool, error) {
	query := "SELECT message_id FROM " + s.options.qualifiedTable() +
		" WHERE consumer_group = ? AND topic = ? AND bucket = ? LIMIT 1"
	for bucket := range int32(registered.Buckets) {
		var id []byte
		err := s.session.Query(query, registered.ConsumerGroup, registered.Name,
			bucket).WithContext(ctx).Consistency(s.levels.read).Scan(&id)
		if errors.Is(err, gocql.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("look for claims of scope %s/%s: cassandra: %w",
				registered.ConsumerGroup, registered.Name, err)
		}
		return true, nil
	}
	return false, nil
}

// Amend implements dedup.Amender.
func (s *Store) Amend(ctx context.Context, registered, scope dedup.Scope) error {
	row, found, err := s.registration(ctx, registered)
	if err != nil {
		return err
	}
	if !found {
		return s.Register(ctx, scope)
	}
	// processes that run keep the key
	was, next := registration{registered, row.hash}, registration{scope, row.hash}
	err = s.conditional(ctx, "UPDATE "+s.options.scopesTable()+" SET buckets = ?, extractor = ? "+
		"WHERE consumer_group = ? AND topic = ? IF buckets = ? AND extractor = ?",
		scope.Buckets, next.extractor(), scope.ConsumerGroup, scope.Name, registered.Buckets,
		was.extractor()).Iter().Close()
	if err != nil {
		return fmt.Errorf("register scope %s/%s again: cassandra: %w", scope.ConsumerGroup,
			scope.Name, err)
	}
	return s.Register(ctx, scope)
}
