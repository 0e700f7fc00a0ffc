package cassandra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

// Register implements dedup.Store by a row of dedup_scopes that is inserted once.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	const attempts = 5
	var err error
	for n := range attempts {
		if n > 0 && !pause.For(ctx, time.Duration(n)*200*time.Millisecond) {
			return context.Cause(ctx)
		}
		if err = s.register(ctx, scope); err == nil || errors.Is(err, dedup.ErrScopeMismatch) {
			return err
		}
	}
	return err
}

func (s *Store) register(ctx context.Context, scope dedup.Scope) error {
	row := registration{scope: scope, hash: newHasher()}
	query := s.conditional(ctx,
		"INSERT INTO "+s.options.scopesTable()+
			" (consumer_group, topic, buckets, extractor) VALUES (?, ?, ?, ?) IF NOT EXISTS",
		scope.ConsumerGroup, scope.Name, scope.Buckets, row.extractor())
	if err := query.Iter().Close(); err != nil {
		return fmt.Errorf("register scope %s/%s: cassandra: %w", scope.ConsumerGroup, scope.Name,
			err)
	}
	registered, found, err := s.Registered(ctx, scope)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("register scope %s/%s: cassandra: the row that was inserted is not there",
			scope.ConsumerGroup, scope.Name)
	}
	return dedup.CompareScopes(scope, registered)
}

// Registered implements dedup.Store with a serial read.
func (s *Store) Registered(
	ctx context.Context, scope dedup.Scope,
) (registered dedup.Scope, found bool, err error) {
	row, found, err := s.registration(ctx, scope)
	return row.scope, found, err
}

func (s *Store) registration(
	ctx context.Context, scope dedup.Scope,
) (row registration, found bool, err error) {
	var buckets int
	var extractor string
	err = s.session.Query("SELECT buckets, extractor FROM "+s.options.scopesTable()+
		" WHERE consumer_group = ? AND topic = ?",
		scope.ConsumerGroup, scope.Name).WithContext(ctx).Consistency(s.levels.read).Scan(&buckets,
		&extractor)
	if errors.Is(err, gocql.ErrNotFound) {
		return registration{}, false, nil
	}
	if err != nil {
		return registration{}, false, fmt.Errorf("read scope %s/%s: cassandra: %w",
			scope.ConsumerGroup, scope.Name, err)
	}
	row.scope = dedup.Scope{ConsumerGroup: scope.ConsumerGroup, Name: scope.Name, Buckets: buckets}
	row.scope.Extractor, row.hash = splitExtractor(extractor)
	return row, true, nil
}

// Forget implements dedup.Store. It deletes bucket by bucket, without conditions: nobody else
// writes to the scope.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	defer s.forgetStates(scope)
	partition := "DELETE FROM " + s.options.qualifiedTable() +
		" WHERE consumer_group = ? AND topic = ? AND bucket = ?"
	for bucket := range int32(scope.Buckets) {
		if err := s.session.Query(
			partition, scope.ConsumerGroup, scope.Name, bucket,
		).WithContext(ctx).Exec(); err != nil {
			return fmt.Errorf("forget scope %s/%s: cassandra: %w", scope.ConsumerGroup, scope.Name,
				err)
		}
	}
	err := s.conditional(ctx, "DELETE FROM "+s.options.scopesTable()+
		" WHERE consumer_group = ? AND topic = ? IF EXISTS",
		scope.ConsumerGroup, scope.Name).Iter().Close()
	if err != nil {
		return fmt.Errorf("forget scope %s/%s: cassandra: %w", scope.ConsumerGroup, scope.Name, err)
	}
	return nil
}

// forgetStates forgets how the IDs of a scope were hashed: the next registration has another key.
func (s *Store) forgetStates(scope dedup.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.scopes, func(of dedup.Scope, _ *scopeState) bool {
		return of.ConsumerGroup == scope.ConsumerGroup && of.Name == scope.Name
	})
}
