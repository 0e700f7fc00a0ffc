package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
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
		if _, err := s.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Warn("expired idempotency records were not deleted, trying again later", "error", err, "after", interval)
		}
	}
}

// sweep deletes the records that have expired. Every write left an entry under the time when its record
// was to end; a later write has moved that.
func (s *Store) sweep(ctx context.Context, now time.Time) (deleted int, err error) {
	iter, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{endPrefix}, UpperBound: endKey(now.Add(time.Millisecond), nil),
	})
	if err != nil {
		return 0, fmt.Errorf("look for expired records: %w", err)
	}
	for iter.First(); iter.Valid() && err == nil && ctx.Err() == nil; iter.Next() {
		var gone bool
		if gone, err = s.deleteEnded(slices.Clone(iter.Key()), now); gone {
			deleted++
		}
	}
	if err = errors.Join(err, iter.Close()); err != nil {
		return deleted, fmt.Errorf("delete expired records: %w", err)
	}
	return deleted, nil
}

// deleteEnded is not synced: a deletion that a crash undoes is repeated by the next sweep.
func (s *Store) deleteEnded(end []byte, now time.Time) (deleted bool, err error) {
	key := endedKey(end)
	lock := s.lock(key)
	lock.Lock()
	defer lock.Unlock()
	_, lives, err := s.read(key, now)
	if err != nil {
		return false, err
	}
	batch := s.db.NewBatch()
	err = batch.Delete(end, nil)
	if err == nil && !lives {
		err = batch.Delete(key, nil)
	}
	if err == nil {
		err = batch.Commit(pebble.NoSync)
	}
	return !lives, errors.Join(err, batch.Close())
}
