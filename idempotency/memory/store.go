// Package memory is an idempotency.Store in a map of this process. It forgets everything when the
// process ends: an execution that was recorded before may then run again. It is for tests, and for
// work that only has to be done once while a process lives.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

// Store is an idempotency.Store in memory.
type Store struct {
	mu      sync.Mutex
	records map[idempotency.Key]held
	sweepAt int // number of records at which those that expired are deleted
}

var _ idempotency.Store = (*Store)(nil)

type held struct {
	record  idempotency.Record
	expires time.Time
}

const minSweep = 1024

// New returns an empty store.
func New() *Store {
	return &Store{records: make(map[idempotency.Key]held), sweepAt: minSweep}
}

// Get implements idempotency.Store.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.Record{}, fmt.Errorf("get: memory: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.currentLocked(key, time.Now()), nil
}

// Swap implements idempotency.Store.
func (s *Store) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	if err := ctx.Err(); err != nil {
		return current, false, fmt.Errorf("swap: memory: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if current := s.currentLocked(key, now); current.Version != old {
		return current, false, nil
	}
	next.Response = bytes.Clone(next.Response)
	s.records[key] = held{next, now.Add(ttl)}
	s.sweepLocked(now)
	return idempotency.Record{}, true, nil
}

// currentLocked returns a record that shares no memory with the store.
func (s *Store) currentLocked(key idempotency.Key, now time.Time) idempotency.Record {
	h, ok := s.records[key]
	if !ok || !now.Before(h.expires) {
		return idempotency.Record{}
	}
	h.record.Response = bytes.Clone(h.record.Response)
	return h.record
}

// sweepLocked deletes what has expired whenever the number of records has doubled.
func (s *Store) sweepLocked(now time.Time) {
	if len(s.records) < s.sweepAt {
		return
	}
	for key, h := range s.records {
		if !now.Before(h.expires) {
			delete(s.records, key)
		}
	}
	s.sweepAt = max(minSweep, 2*len(s.records))
}
