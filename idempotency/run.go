package idempotency

import (
	"context"
	"errors"
	"fmt"
)

// run executes the function under a lease and records what comes of it.
func (e *Executor) run(
	ctx context.Context, l *lease, fn func(context.Context) ([]byte, error),
) (Result, error) {
	if err := l.refresh(ctx); err != nil {
		return Result{}, err
	}
	returned := false
	held := l.keep(ctx)
	defer func() {
		if !returned { // a panic, or runtime.Goexit
			l.stop()
			_ = e.fail(ctx, l, errors.New("the function panicked"))
		}
	}()
	response, err := fn(held)
	returned = true
	l.stop()
	if err != nil {
		return Result{}, e.fail(ctx, l, err)
	}
	return e.complete(ctx, l, response)
}

// complete records a response.
func (e *Executor) complete(ctx context.Context, l *lease, response []byte) (Result, error) {
	unrecorded := &UnrecordedError{Response: response, Token: l.record.Token}
	if len(response) > e.options.MaxResponse {
		unrecorded.Err = fmt.Errorf("%w: %d bytes, the limit is %d", ErrResponseTooLarge,
			len(response), e.options.MaxResponse)
		if err := e.end(ctx, l, Failed, []byte(unrecorded.Err.Error())); err != nil {
			unrecorded.Err = errors.Join(unrecorded.Err, err)
		}
		return Result{}, unrecorded
	}
	if unrecorded.Err = e.end(ctx, l, Completed, response); unrecorded.Err != nil {
		return Result{}, unrecorded
	}
	return Result{Response: response, Token: l.record.Token}, nil
}

// fail records a failure, or frees the key, and returns what the caller is told.
func (e *Executor) fail(ctx context.Context, l *lease, cause error) error {
	if e.isFinal(cause) {
		failed := &FailedError{Message: cause.Error(), Cause: cause}
		err := e.end(ctx, l, Failed, []byte(failed.Message[:min(len(failed.Message), maxFailure)]))
		if err == nil {
			return failed
		}
		return errors.Join(failed, err)
	}
	err := e.end(ctx, l, Released, nil)
	if errors.Is(err, ErrLeaseLost) {
		return errors.Join(cause, err)
	}
	if err != nil {
		e.options.Logger.Warn("idempotency key was not released; it is free when its lease is over",
			"namespace", l.key.Namespace, "lease", l.record.Lease, "error", err)
	}
	return cause
}

// end records the outcome, also for a caller who is gone.
func (e *Executor) end(ctx context.Context, l *lease, state State, response []byte) error {
	next := l.record
	next.Revision++
	next.State, next.Response = state, response
	held, err := l.swap(context.WithoutCancel(ctx), next)
	if err != nil {
		return fmt.Errorf("record outcome %s: %w", state, err)
	}
	if !held {
		return ErrLeaseLost
	}
	return nil
}
