package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/dedup"
)

// registration is what is kept of a scope, in JSON and without a TTL.
type registration struct {
	Buckets   int    `json:"buckets"`
	Extractor string `json:"extractor"`
}

// Register implements dedup.Store by a key that is set once, as a claim is.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	text, err := json.Marshal(registration{scope.Buckets, scope.Extractor})
	if err != nil {
		return fmt.Errorf("register scope %s/%s: redis: %w", scope.ConsumerGroup, scope.Name, err)
	}
	key := scopeKey(s.options.KeyPrefix, scopeKind, scope)
	before, err := s.client.SetArgs(ctx, key, text, goredis.SetArgs{Mode: "NX", Get: true}).Result()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("register scope %s/%s: redis: %w", scope.ConsumerGroup, scope.Name,
			s.explain(ctx, err))
	}
	registered, err := parseRegistration(scope, before)
	if err != nil {
		return err
	}
	return dedup.CompareScopes(scope, registered)
}

// Registered implements dedup.Store.
func (s *Store) Registered(
	ctx context.Context, scope dedup.Scope,
) (registered dedup.Scope, found bool, err error) {
	text, err := s.client.Get(ctx, scopeKey(s.options.KeyPrefix, scopeKind, scope)).Result()
	if errors.Is(err, goredis.Nil) {
		return dedup.Scope{}, false, nil
	}
	if err != nil {
		return dedup.Scope{}, false, fmt.Errorf("read scope %s/%s: redis: %w", scope.ConsumerGroup,
			scope.Name, s.explain(ctx, err))
	}
	registered, err = parseRegistration(scope, text)
	return registered, err == nil, err
}

func parseRegistration(scope dedup.Scope, text string) (dedup.Scope, error) {
	var r registration
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return dedup.Scope{}, fmt.Errorf("read scope %s/%s: redis: not a registration: %w",
			scope.ConsumerGroup, scope.Name, err)
	}
	return dedup.Scope{ConsumerGroup: scope.ConsumerGroup, Name: scope.Name, Buckets: r.Buckets,
		Extractor: r.Extractor}, nil
}

// Forget implements dedup.Store. It looks at every key of every master, some at a time, so that the
// server stays free for others; the keys go one by one, because a cluster takes no more in a
// command.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	pattern := startingWith(claimPrefix(s.options.KeyPrefix, scope))
	err := s.eachMaster(ctx, func(ctx context.Context, master *goredis.Client) error {
		return forget(ctx, master, pattern)
	})
	if err == nil {
		err = s.client.Del(ctx, scopeKey(s.options.KeyPrefix, scopeKind, scope)).Err()
	}
	if err != nil {
		return fmt.Errorf("forget scope %s/%s: redis: %w", scope.ConsumerGroup, scope.Name,
			s.explain(ctx, err))
	}
	return nil
}

const scanned = 1000 // keys that the server looks at in one go, within a millisecond

func forget(ctx context.Context, master *goredis.Client, pattern string) error {
	cursor := uint64(0)
	for {
		keys, next, err := master.Scan(ctx, cursor, pattern, scanned).Result()
		if err != nil {
			return err
		}
		_, err = master.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for _, key := range keys {
				p.Unlink(ctx, key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
