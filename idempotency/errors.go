package idempotency

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalidKey: the key is empty or too long. Nothing was executed.
	ErrInvalidKey = errors.New("invalid idempotency key")
	// ErrKeyReused: the key was used before, with another request. Nothing was executed.
	ErrKeyReused = errors.New("idempotency key was used with another request")
	// ErrInProgress: another caller's function runs under the key, and the wait for it is over.
	// Nothing was executed.
	ErrInProgress = errors.New("an execution with this idempotency key is in progress")
	// ErrLeaseLost: the owner could not renew its key in time, and another caller may run the
	// function. It is the cause with which the function's context is cancelled.
	ErrLeaseLost = errors.New("lease of the idempotency key was lost")
	// ErrResponseTooLarge: the function returned more than Options.MaxResponse. The key is failed.
	ErrResponseTooLarge = errors.New("response is too large to be recorded")
	// ErrFailed is what every FailedError is.
	ErrFailed = errors.New("execution failed for good")
)

// FailedError is a final failure. The caller whose function failed gets its error as Cause; later
// callers get the text only.
type FailedError struct {
	Message string
	Cause   error // nil when the failure comes from the store
}

// Error returns the message.
func (e *FailedError) Error() string { return e.Message }

// Is makes errors.Is(err, ErrFailed) true.
func (e *FailedError) Is(target error) bool { return target == ErrFailed }

// Unwrap returns the Cause.
func (e *FailedError) Unwrap() error { return e.Cause }

// UnrecordedError says that the function ran and returned a response, which was not recorded, or
// whose recording was not confirmed. The response is that of a real execution, and yet a later
// caller may get another one: unless the recording took place after all, the function is run again
// when the lease is over.
//
// Err tells why: ErrLeaseLost if another caller took over, ErrResponseTooLarge if the response
// could not be kept (then the key is failed and nothing runs again), or what the store said.
type UnrecordedError struct {
	Response []byte
	Token    int64
	Err      error
}

// Error tells why the response was not recorded.
func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("executed, but the response of %d bytes was not recorded: %v",
		len(e.Response), e.Err)
}

// Unwrap returns Err.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// marked is an error whose function said what shall become of the key.
type marked struct {
	error
	final bool
}

func (m *marked) Unwrap() error { return m.error }

// Final marks an error as the lasting outcome of its key: the function does not run again, and
// later callers get the error's text in a [FailedError]. Final(nil) is nil.
func Final(err error) error { return mark(err, true) }

// Retryable marks an error after which the function may run again. It is needed only with
// Options.FailuresAreFinal. Of several marks the outermost counts. Retryable(nil) is nil.
func Retryable(err error) error { return mark(err, false) }

func mark(err error, final bool) error {
	if err == nil {
		return nil
	}
	return &marked{err, final}
}

// isFinal reports whether the error ends its key.
func (e *Executor) isFinal(err error) bool {
	if m, ok := errors.AsType[*marked](err); ok {
		return m.final
	}
	return e.options.FailuresAreFinal
}
