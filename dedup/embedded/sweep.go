package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Expired claims are deleted in small batches with pauses, so that the sweep takes a small share of
// the disk's time; the space comes back when Pebble compacts.
const (
	sweepBatch = 1000
	sweepPause = 20 * time.Millisecond
)

func (s *Store) sweepEvery(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		deleted, err := s.sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("expired claims were not deleted, trying again later", "error", err, "after", interval)
		case deleted > 0:
			s.log.Debug("deleted expired claims", "claims", deleted)
		}
	}
}

// sweep deletes all claims that have expired. Every call of Claim left a list of what it claimed,
// under the time when that ends, so the sweep reads no claim that still holds.
func (s *Store) sweep(ctx context.Context) (deleted int, err error) {
	for after := []byte{endPrefix}; ; {
		if err := s.usable(ctx); err != nil {
			return deleted, err
		}
		lists, expired, err := s.nextEnded(after, s.now())
		if err != nil {
			return deleted, fmt.Errorf("look for expired claims: %w", err)
		}
		if len(lists) == 0 {
			return deleted, nil
		}
		for chunk := range slices.Chunk(expired, sweepBatch) {
			n, err := s.deleteExpired(ctx, chunk)
			deleted += n
			if err != nil {
				return deleted, fmt.Errorf("delete expired claims: %w", err)
			}
			pause(ctx, sweepPause)
		}
		if err := s.deleteLists(lists); err != nil {
			return deleted, fmt.Errorf("delete expired claims: %w", err)
		}
		after = append(lists[len(lists)-1], 0)
	}
}

// nextEnded returns the lists that have ended, as many as fill a batch: a call may have claimed one
// ID or thousands. It begins behind the lists that this sweep deleted, and so does not step over
// their tombstones again.
func (s *Store) nextEnded(after []byte, now time.Time) (lists, expired [][]byte, err error) {
	iter, err := s.db.NewIter(&pebble.IterOptions{LowerBound: after, UpperBound: endKey(now.UnixMilli()+1, 0)})
	if err != nil {
		return nil, nil, err
	}
	for iter.First(); iter.Valid() && len(expired) < sweepBatch; iter.Next() {
		keys, err := parseEndings(slices.Clone(iter.Value()))
		if err != nil {
			return nil, nil, errors.Join(err, iter.Close())
		}
		lists = append(lists, slices.Clone(iter.Key()))
		expired = append(expired, keys...)
	}
	return lists, expired, iter.Close()
}

// deleteLists comes after their claims are deleted: a crash between the two repeats some work.
func (s *Store) deleteLists(lists [][]byte) error {
	batch := s.db.NewBatch()
	for _, list := range lists {
		if err := batch.Delete(list, nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	return errors.Join(batch.Commit(pebble.NoSync), batch.Close())
}

// deleteExpired looks at each key again while nobody else can claim it: it may have been claimed
// anew since.
func (s *Store) deleteExpired(ctx context.Context, expired [][]byte) (deleted int, err error) {
	hashes := make([]uint64, len(expired))
	for i, key := range expired {
		hashes[i] = hash(key)
	}
	mine, err := s.pending.take(ctx, hashes)
	if err != nil {
		return 0, err
	}
	defer s.pending.give(mine)
	reader, err := s.newReader()
	if err != nil {
		return 0, err
	}
	batch, now := s.db.NewBatch(), s.now()
	for _, key := range expired {
		_, holds, err := reader.get(key, now)
		if err == nil && !holds {
			err = batch.Delete(key, nil)
			deleted++
		}
		if err != nil {
			return 0, errors.Join(err, reader.Close(), batch.Close())
		}
	}
	// Not synced: a deletion that a crash undoes is repeated by the next sweep.
	return deleted, errors.Join(reader.Close(), batch.Commit(pebble.NoSync), batch.Close())
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
