package idempotency

import (
	"context"
	"fmt"
	"time"
)

// claim returns either a record that the caller now owns, and the time since when at the latest, or
// one that is final, and no time.
func (e *Executor) claim(
	ctx context.Context, key Key, request Hash,
) (owned Record, since time.Time, err error) {
	var seen Record // what is known of the key: nothing
	owner, wait := newOwner(), e.newWaiting()
	for {
		if seen.Version != (Version{}) && seen.Request != request {
			return Record{}, time.Time{}, ErrKeyReused
		}
		if seen.State == Completed || seen.State == Failed {
			e.sightings.forget(key)
			return seen, time.Time{}, nil
		}
		if e.isFree(key, seen) {
			next, start := e.successor(seen, owner, request), time.Now()
			current, mine, err := e.swap(ctx, key, seen.Version, next)
			if err != nil {
				return Record{}, time.Time{}, err
			}
			if mine {
				e.sightings.forget(key)
				return next, start, nil
			}
			seen = current
			continue
		}
		if err := wait.pause(ctx); err != nil {
			return Record{}, time.Time{}, err
		}
		if seen, err = e.get(ctx, key); err != nil {
			return Record{}, time.Time{}, err
		}
	}
}

// swap puts a record in the place of an earlier one, unless another caller of this process asks
// about the key first. It returns the record that is there then, and whether it is next.
func (e *Executor) swap(
	ctx context.Context, key Key, earlier Version, next Record,
) (current Record, mine bool, err error) {
	return e.turns.take(ctx, key, func() (Record, bool, error) {
		current, done, err := e.insist(ctx, func(ctx context.Context) (Record, bool, error) {
			return e.store.Swap(ctx, key, earlier, next, e.options.ttl(key.Namespace))
		})
		if err == nil && (done || current.Version == next.Version) {
			return next, true, nil
		}
		return current, false, err
	})
}

// get reads the record of a key, for all callers of this process that wait to.
func (e *Executor) get(ctx context.Context, key Key) (current Record, err error) {
	current, _, err = e.turns.take(ctx, key, func() (Record, bool, error) {
		return e.insist(ctx, func(ctx context.Context) (Record, bool, error) {
			current, err := e.store.Get(ctx, key)
			return current, true, err
		})
	})
	return current, err
}

// isFree reports whether a record, or its absence, leaves the key to the next caller.
func (e *Executor) isFree(key Key, seen Record) bool {
	switch seen.State {
	case Started:
		return e.sightings.unchanged(key, seen.Version) >= seen.Lease
	case Completed, Failed:
		return false
	}
	return true
}

// successor is the record of the execution that follows.
func (e *Executor) successor(seen Record, owner Owner, request Hash) Record {
	return Record{
		Version: Version{Owner: owner, Revision: seen.Revision + 1},
		State:   Started,
		Token:   max(seen.Token+1, time.Now().UnixMilli()),
		Lease:   e.options.Lease,
		Request: request,
	}
}

// waiting is one caller's wait for another one's execution.
type waiting struct {
	limit    time.Duration
	poll     time.Duration
	deadline time.Time
	next     time.Duration
}

const firstPause = 10 * time.Millisecond

func (e *Executor) newWaiting() *waiting {
	return &waiting{
		limit: e.options.Wait, poll: e.options.Poll,
		deadline: time.Now().Add(e.options.Wait), next: min(firstPause, e.options.Poll),
	}
}

// pause returns ErrInProgress when the wait is over.
func (w *waiting) pause(ctx context.Context) error {
	pause := jitter(w.next)
	w.next = min(2*w.next, w.poll)
	if w.limit != 0 {
		left := time.Until(w.deadline)
		if w.limit == NoWait || left <= 0 {
			return ErrInProgress
		}
		pause = min(pause, left)
	}
	if !sleep(ctx, pause) {
		return fmt.Errorf("%w: %w", ErrInProgress, context.Cause(ctx))
	}
	return nil
}
