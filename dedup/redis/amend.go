package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Amender = (*Store)(nil)

var errFound = errors.New("there is a claim")

// HasClaims implements dedup.Amender. Like Forget it looks at every key, until it finds one.
func (s *Store) HasClaims(ctx context.Context, registered dedup.Scope) (bool, error) {
	pattern := startingWith(claimPrefix(s.options.KeyPrefix, registered))
	err := s.eachMaster(ctx, func(ctx context.Context, master *goredis.Client) error {
		for cursor := uint64(0); ; {
			keys, next, err := master.Scan(ctx, cursor, pattern, scanned).Result()
			if err != nil {
				return err
			}
			if len(keys) > 0 {
				return errFound
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for claims of scope %s/%s: redis: %w",
			registered.ConsumerGroup, registered.Name, s.explain(ctx, err))
	}
	return false, nil
}

// Amend implements dedup.Amender.
func (s *Store) Amend(ctx context.Context, _, scope dedup.Scope) error {
	text, err := json.Marshal(registration{scope.Buckets, scope.Extractor})
	if err == nil {
		err = s.client.Set(ctx, scopeKey(s.options.KeyPrefix, scopeKind, scope), text, 0).Err()
	}
	if err != nil {
		return fmt.Errorf("register scope %s/%s again: redis: %w", scope.ConsumerGroup, scope.Name,
			s.explain(ctx, err))
	}
	return nil
}
