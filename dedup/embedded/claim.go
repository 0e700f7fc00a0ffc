package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// Claim implements dedup.Store. Calls about different IDs run side by side and share their syncs;
// two calls about one ID run one after the other, so that what was read is still true when it is
// written.
func (s *Store) Claim(ctx context.Context, scope dedup.Scope, claims []dedup.Claim) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	if err := s.claim(ctx, scope, claims, answers); err != nil {
		clear(answers)
		return answers, fmt.Errorf("claim %d ids: embedded: %w", len(claims), err)
	}
	crashpoint.At("claims-synced")
	return answers, nil
}

func (s *Store) claim(ctx context.Context, scope dedup.Scope, claims []dedup.Claim, answers []dedup.Answer) error {
	if err := s.usable(ctx); err != nil || len(claims) == 0 {
		return err
	}
	record, err := s.ensureScope(scope)
	if err != nil {
		return err
	}
	keys := newKeys(record.ID, claims)
	mine, err := s.pending.take(ctx, keys.hashes)
	if err != nil {
		return err
	}
	point, err := s.decide(keys, claims, scope.TTL, answers)
	s.pending.give(mine)
	if err != nil {
		return err
	}
	crashpoint.At("claims-written")
	return point.wait(ctx)
}

// keys are the database keys of a call's claims, in one piece of memory.
type keys struct {
	data   []byte
	ends   []int
	hashes []uint64
}

func newKeys(scope uint32, claims []dedup.Claim) *keys {
	size := 0
	for i := range claims {
		size += 5 + len(claims[i].ID)
	}
	k := &keys{data: make([]byte, 0, size), ends: make([]int, len(claims)), hashes: make([]uint64, len(claims))}
	for i := range claims {
		start := len(k.data)
		k.data = claimKey(k.data, scope, claims[i].ID)
		k.ends[i] = len(k.data)
		k.hashes[i] = hash(k.data[start:])
	}
	return k
}

func (k *keys) at(i int) []byte {
	start := 0
	if i > 0 {
		start = k.ends[i-1]
	}
	return k.data[start:k.ends[i]]
}

// sorted returns the indexes in the order of the keys, in which they are found and written fastest.
func (k *keys) sorted() []int {
	order := make([]int, len(k.ends))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(k.at(a), k.at(b)) })
	return order
}

// decide reads every key and writes the claims of those that are free. The answers are good when
// the sync point is reached.
func (s *Store) decide(k *keys, claims []dedup.Claim, ttl time.Duration, answers []dedup.Answer) (*syncPoint, error) {
	reader, err := s.newReader()
	if err != nil {
		return nil, err
	}
	writer := s.newWriter(len(k.data), ttl)
	for _, i := range k.sorted() {
		owner, found, err := reader.get(k.at(i), writer.now)
		if err == nil && found {
			answers[i] = owner.answer()
			continue
		}
		if err == nil {
			answers[i], err = writer.claim(k.at(i), &claims[i])
		}
		if err != nil {
			return nil, errors.Join(err, reader.Close(), writer.batch.Close())
		}
	}
	if err := errors.Join(reader.Close(), writer.end()); err != nil {
		return nil, errors.Join(err, writer.batch.Close())
	}
	return s.write(writer.batch)
}

// writer collects the claims of one call.
type writer struct {
	batch   *pebble.Batch
	now     time.Time
	record  claimRecord // what the claims have in common, and the last one
	value   [recordBytes]byte
	endings []byte
}

func (s *Store) newWriter(keyBytes int, ttl time.Duration) *writer {
	now := s.now()
	return &writer{
		batch: s.db.NewBatch(), now: now, endings: make([]byte, 0, keyBytes+keyBytes/8),
		record: claimRecord{claimedAt: now.UnixMilli(), expiresAt: now.Add(ttl).UnixMilli()},
	}
}

func (w *writer) claim(key []byte, c *dedup.Claim) (dedup.Answer, error) {
	w.record.owner, w.record.fingerprint = c.Owner, c.Fingerprint
	w.endings = appendEnding(w.endings, key)
	answer := w.record.answer()
	answer.Outcome = dedup.Applied
	return answer, w.batch.Set(key, w.record.append(w.value[:0]), nil)
}

// end adds the list by which the sweep finds the claims.
func (w *writer) end() error {
	if len(w.endings) == 0 {
		return nil
	}
	return w.batch.Set(endKey(w.record.expiresAt, rand.Uint64()), w.endings, nil)
}

// write makes the batch visible and returns the point at which it is durable. A call that wrote
// nothing waits for the latest write before it: one of its answers may tell of that.
func (s *Store) write(batch *pebble.Batch) (*syncPoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if batch.Empty() {
		return s.last, batch.Close()
	}
	if err := s.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		s.health.fail(err)
		return nil, err
	}
	if err := s.health.err(); err != nil {
		return nil, err // Pebble reports a failed commit only to its logger
	}
	s.last = s.syncing(batch)
	return s.last, nil
}
