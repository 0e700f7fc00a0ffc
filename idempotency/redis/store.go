// Package redis is an idempotency.Store on Redis, Valkey, or what else runs their commands and
// scripts.
//
// A key of the store is one string, and every swap is one script, so it works on a cluster, too.
// TTLs are measured by the server.
//
// Redis acknowledges a write before its replicas have it, and by default before it is on disk. A
// failover, or a crash without appendfsync always, may forget executions that were recorded, and
// they may run again. A server that evicts keys does the same: set maxmemory-policy noeviction.
// Where an execution must never be repeated, use PostgreSQL or Cassandra, or check the fencing
// token.
package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/idempotency"
)

// Store is an idempotency.Store on a Redis client. Any number of processes may share its keys.
type Store struct {
	client redis.UniversalClient
	prefix string
}

var _ idempotency.Store = (*Store)(nil)

// New returns a store whose keys begin with prefix, such as "idempotency:". The client stays the
// caller's; it must read from the primary only (no ReadOnly, RouteByLatency or RouteRandomly).
func New(client redis.UniversalClient, prefix string) *Store {
	return &Store{client: client, prefix: prefix}
}

// swap compares the version that begins at the second byte of the stored record.
//
// KEYS[1] the key, ARGV[1] the version to replace or "", ARGV[2] the next record, ARGV[3] its TTL
// in milliseconds. It returns nothing when it was done, else a list of the record in its way, if
// any.
var swap = redis.NewScript(`
local current = redis.call('GET', KEYS[1])
local version = current and string.sub(current, 2, ` + strconv.Itoa(1+idempotency.VersionBytes) + `) or ''
if version ~= ARGV[1] then
	return current and {current} or {}
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return false
`)

// key keeps namespace and ID apart by the length of the first.
func (s *Store) key(k idempotency.Key) string {
	return s.prefix + strconv.Itoa(len(k.Namespace)) + ":" + k.Namespace + ":" + k.ID
}

// Get implements idempotency.Store.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	data, err := s.client.Get(ctx, s.key(key)).Bytes()
	if errors.Is(err, redis.Nil) {
		return idempotency.Record{}, nil
	}
	record := idempotency.Record{}
	if err == nil {
		record, err = idempotency.ParseRecord(data)
	}
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("get: redis: %w", err)
	}
	return record, nil
}

// Swap implements idempotency.Store.
func (s *Store) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	current, done, err = s.swap(ctx, key, old, next, ttl)
	if err != nil {
		return idempotency.Record{}, false, fmt.Errorf("swap: redis: %w", err)
	}
	return current, done, nil
}

func (s *Store) swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	var version []byte
	if old != (idempotency.Version{}) {
		if version, err = old.AppendBinary(nil); err != nil {
			return current, false, err
		}
	}
	record, err := next.AppendBinary(nil)
	if err != nil {
		return current, false, err
	}
	found, err := swap.Run(ctx, s.client, []string{s.key(key)}, version, record,
		max(1, ttl.Milliseconds())).StringSlice()
	switch {
	case errors.Is(err, redis.Nil):
		return current, true, nil
	case err != nil || len(found) == 0:
		return current, false, err
	}
	current, err = idempotency.ParseRecord([]byte(found[0]))
	return current, false, err
}
