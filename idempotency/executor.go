package idempotency

import (
	"context"
	"fmt"
	"time"
)

// Executor runs functions once per key. It is safe for concurrent use, and has no goroutines but
// those of calls that are under way.
type Executor struct {
	store     Store
	options   Options
	sightings *sightings
	turns     *turns
}

// New returns an executor. Its options may differ from those of other executors on the same store.
func New(store Store, options Options) (*Executor, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("idempotency options: %w", err)
	}
	return &Executor{store: store, options: options, sightings: newSightings(),
		turns: newTurns()}, nil
}

// WithWait returns an executor that differs in Options.Wait only: zero waits as long as the context
// lives, NoWait not at all.
func (e *Executor) WithWait(wait time.Duration) *Executor {
	other := *e
	other.options.Wait = max(wait, NoWait)
	return &other
}

// MaxResponse returns the largest response that is kept, in bytes.
func (e *Executor) MaxResponse() int { return e.options.MaxResponse }

// Result is the recorded response of a key.
type Result struct {
	Response []byte
	Replayed bool  // another call executed the function
	Token    int64 // the fencing token of the execution
}

// Execute runs fn unless it was run under the key before, and returns the recorded response. fn
// runs in the caller's goroutine, with a context that has the fencing token ([Token]) and is
// cancelled when ctx is or when the lease is lost (cause ErrLeaseLost). Whatever becomes of ctx,
// the outcome of fn is still recorded.
//
// Errors, to be told apart with errors.Is and errors.As:
//
//   - an error of fn that was not final comes back as it is: the key is free again;
//   - a FailedError (ErrFailed), when fn, in this call or in an earlier one, failed for good;
//   - ErrKeyReused, ErrInProgress, ErrInvalidKey, or the store's error: fn did not run in this call;
//   - UnrecordedError: fn ran, and its response was not recorded;
//   - ErrLeaseLost, beside an error of fn: others may run fn by now.
//
// A final error of fn that could not be recorded is a FailedError joined with the store's error.
func (e *Executor) Execute(
	ctx context.Context, key Key, request Hash, fn func(ctx context.Context) ([]byte, error),
) (Result, error) {
	if err := key.validate(); err != nil {
		return Result{}, err
	}
	record, claimed, err := e.claim(ctx, key, request)
	if err != nil {
		return Result{}, fmt.Errorf("claim idempotency key: %w", err)
	}
	if claimed.IsZero() {
		return replay(record)
	}
	return e.run(ctx, newLease(e, key, record, claimed), fn)
}

// replay is the outcome of an earlier call.
func replay(r Record) (Result, error) {
	if r.State == Failed {
		return Result{}, &FailedError{Message: string(r.Response)}
	}
	return Result{Response: r.Response, Replayed: true, Token: r.Token}, nil
}

type tokenKey struct{}

// Token returns the fencing token of the execution whose function got ctx. Tokens of one key grow
// from one execution to the next. They begin at the claimant's clock, in milliseconds since 1970,
// so that they also grow when a key is used again after it was forgotten.
func Token(ctx context.Context) (token int64, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(int64)
	return token, ok
}
