package idempotency

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"
)

// lease is one caller's hold of a key, from the claim to the recorded outcome. Either the goroutine
// that keep starts uses it, or the caller, never both.
type lease struct {
	e   *Executor
	key Key
	// as it stands in the store; an attempt to renew it may have left it one revision behind
	record Record
	until  time.Time // when others may take over, by this process's clock

	stop func() // of keep, and waits for it
}

func newLease(e *Executor, key Key, record Record, since time.Time) *lease {
	return &lease{e: e, key: key, record: record, until: since.Add(record.Lease)}
}

// refresh renews a lease that a late answer to the claim has used up, before the function runs.
func (l *lease) refresh(ctx context.Context) error {
	if time.Until(l.until) >= l.record.Lease*2/3 {
		return nil
	}
	// nothing runs yet that an owner who is late could harm
	l.until = time.Now().Add(l.record.Lease)
	if l.renew(ctx) {
		return nil
	}
	return errors.Join(ErrLeaseLost, context.Cause(ctx))
}

// keep renews the lease in the background until stop is called. It cancels the context that it
// returns when the lease is lost.
func (l *lease) keep(ctx context.Context) context.Context {
	ctx, lose := context.WithCancelCause(context.WithValue(ctx, tokenKey{}, l.record.Token))
	// The function may go on after its caller went away, and so does the lease.
	renewing, end := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() {
		if !l.renewUntilDone(renewing) {
			l.e.options.Logger.Warn("lease of an idempotency key was lost",
				"namespace", l.key.Namespace, "token", l.record.Token)
			lose(ErrLeaseLost)
		}
	})
	l.stop = func() {
		end()
		background.Wait()
		lose(nil)
	}
	return ctx
}

// renewUntilDone reports false when the lease is lost.
func (l *lease) renewUntilDone(done context.Context) bool {
	for sleep(done, l.record.Lease/3) {
		if !l.renew(done) && done.Err() == nil {
			return false
		}
	}
	return true
}

// renew makes one more revision of the record, and reports whether the lease holds. It insists as
// long as it does.
func (l *lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, l.until)
	defer cancel()
	for ctx.Err() == nil {
		next, start := l.record, time.Now()
		next.Revision++
		held, err := l.swap(ctx, next)
		if err == nil {
			l.until = start.Add(l.record.Lease)
			return held
		}
	}
	return false
}

// sameOutcome tells an owner's own work from what it recorded before: a Hold may be ended twice,
// with two responses.
func sameOutcome(a, b Record) bool {
	return a.State == b.State && bytes.Equal(a.Response, b.Response)
}

// swap replaces the record by the caller's next one, and reports whether the key is still the
// caller's. An error leaves it open whether the swap was done.
func (l *lease) swap(ctx context.Context, next Record) (held bool, err error) {
	for {
		current, done, err := l.e.insist(ctx, func(ctx context.Context) (Record, bool, error) {
			return l.e.store.Swap(ctx, l.key, l.record.Version, next,
				l.e.options.ttl(l.key.Namespace))
		})
		switch {
		case err != nil:
			return false, err
		case done || current.Version == next.Version && sameOutcome(current, next):
			l.record = next
			return true, nil
		case current.Owner != next.Owner || current.State != Started:
			return false, nil
		}
		// An earlier renewal was done after all, though no answer said so.
		l.record.Version = current.Version
		next.Revision = current.Revision + 1
	}
}
