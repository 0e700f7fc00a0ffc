package idempotency

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Hold is an execution whose owner is not in this process, and holds the key without a function: a
// program behind an API. The executor renews nothing for it. It belongs to one key. It may be kept
// as bytes, and used with another executor on the same store.
type Hold struct {
	record Record // Started
	ttl    time.Duration
}

// Terms are what the owner of a Hold asks for. Zero fields stand for the executor's options.
type Terms struct {
	TTL   time.Duration // as Options.TTL
	Lease time.Duration // as Options.Lease, until the owner calls Extend
	Wait  time.Duration // as Options.Wait
}

// Token is the fencing token of the execution.
func (h Hold) Token() int64 { return h.record.Token }

// Lease is for how long the owner holds the key, from before its call of Begin or Extend. After
// that others may take it over.
func (h Hold) Lease() time.Duration { return h.record.Lease }

// Begin claims a key as Execute does, and runs nothing. If held is true the caller is the owner: it
// calls Extend before the lease is over, and Complete or Fail in the end. Otherwise the result is
// that of an earlier execution. Errors are those of Execute where no function ran.
func (e *Executor) Begin(
	ctx context.Context, key Key, request Hash, terms Terms,
) (hold Hold, held bool, result Result, err error) {
	if err := key.validate(); err != nil {
		return hold, false, result, err
	}
	if e, err = e.onTerms(terms); err != nil {
		return hold, false, result, err
	}
	record, claimed, err := e.claim(ctx, key, request)
	if err != nil {
		return hold, false, result, fmt.Errorf("claim idempotency key: %w", err)
	}
	if claimed.IsZero() {
		result, err = replay(record)
		return hold, false, result, err
	}
	return Hold{record, e.options.ttl(key.Namespace)}, true, Result{}, nil
}

// ErrTerms is wrapped by the error of terms that no options may have.
var ErrTerms = errors.New("terms that cannot be kept")

// onTerms is the executor with other options for one call.
func (e *Executor) onTerms(terms Terms) (*Executor, error) {
	other := *e
	if terms.TTL != 0 {
		other.options.TTL, other.options.NamespaceTTL = terms.TTL, nil
	}
	if terms.Lease != 0 {
		other.options.Lease = terms.Lease
	}
	if terms.Wait != 0 {
		other.options.Wait = terms.Wait
	}
	if err := other.options.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	return &other, nil
}

// Extend renews the lease. The Hold that it returns takes the place of the other one, which is as
// good still. ErrLeaseLost says that another caller has the key, or that it has an outcome.
func (e *Executor) Extend(ctx context.Context, key Key, h Hold) (Hold, error) {
	l := e.leaseOf(key, h)
	next := l.record
	next.Revision++
	held, err := l.swap(ctx, next)
	switch {
	case err != nil:
		return h, fmt.Errorf("extend the lease of an idempotency key: %w", err)
	case !held:
		return h, ErrLeaseLost
	}
	return Hold{l.record, h.ttl}, nil
}

// Complete records the response. It may be repeated. ErrLeaseLost says that it was not recorded,
// because another caller took the key over; ErrResponseTooLarge that it cannot be.
func (e *Executor) Complete(ctx context.Context, key Key, h Hold, response []byte) error {
	if len(response) > e.options.MaxResponse {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrResponseTooLarge, len(response),
			e.options.MaxResponse)
	}
	return e.endHold(ctx, key, h, Completed, response)
}

// Fail records a failure for good, with its text, or frees the key for the next caller. It may be
// repeated. ErrLeaseLost is that of Complete.
func (e *Executor) Fail(
	ctx context.Context, key Key, h Hold, message string, final bool,
) error {
	if !final {
		return e.endHold(ctx, key, h, Released, nil)
	}
	return e.endHold(ctx, key, h, Failed, []byte(message[:min(len(message), maxFailure)]))
}

// endHold recognises an outcome that an earlier call recorded, of which no answer came.
func (e *Executor) endHold(
	ctx context.Context, key Key, h Hold, state State, response []byte,
) error {
	err := e.end(ctx, e.leaseOf(key, h), state, response)
	if !errors.Is(err, ErrLeaseLost) {
		return err
	}
	current, getErr := e.get(ctx, key)
	if getErr != nil {
		return fmt.Errorf("record outcome %s: %w", state, getErr)
	}
	if current.Owner == h.record.Owner &&
		sameOutcome(current, Record{State: state, Response: response}) {
		return nil
	}
	return err
}

func (e *Executor) leaseOf(key Key, h Hold) *lease {
	other := *e
	other.options.TTL, other.options.NamespaceTTL = h.ttl, nil
	return newLease(&other, key, h.record, time.Time{})
}

// holdBytes is the length of a Hold in bytes: a record without a response, and the TTL.
const holdBytes = recordHeader + 8

// AppendBinary appends the hold to b. It is a secret between the owner and the store: who has it
// can end the execution.
func (h Hold) AppendBinary(b []byte) ([]byte, error) {
	b, err := h.record.AppendBinary(b)
	return binary.BigEndian.AppendUint64(b, uint64(h.ttl)), err
}

// ParseHold reads what [Hold.AppendBinary] wrote. Errors wrap ErrRecord.
func ParseHold(data []byte) (h Hold, err error) {
	if len(data) != holdBytes {
		return h, fmt.Errorf("%w: a hold of %d bytes", ErrRecord, len(data))
	}
	if h.record, err = ParseRecord(data[:recordHeader]); err != nil {
		return h, err
	}
	h.ttl = time.Duration(binary.BigEndian.Uint64(data[recordHeader:]))
	r := &h.record
	if r.State != Started || r.Revision < 1 || r.Lease < shortestLease || h.ttl < r.Lease {
		return Hold{}, fmt.Errorf("%w: no hold", ErrRecord)
	}
	return h, nil
}
