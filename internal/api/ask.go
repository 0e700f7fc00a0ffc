package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/kdedup/kdedup/dedup"
)

// MaxID is the longest message ID that a caller may claim, in bytes. It fits every store.
const MaxID = 32 << 10

// access is the way of the methods to the scopes of a store.
type access struct {
	scopes Scopes
	store  string // by its type
}

// scope finds one that the caller may use. Who may not use it learns nothing about whether there is
// one.
func (a access) scope(ctx context.Context, name string, ids int) (dedup.Scope, error) {
	if name == "" {
		return dedup.Scope{}, invalid("scope: is required")
	}
	scope, exists := a.scopes(name)
	asked := askedOf(ctx)
	if !exists || !asked.mayUse(name) {
		return dedup.Scope{}, connect.NewError(connect.CodePermissionDenied, fmt.Errorf(
			"scope: %q is none of the scopes that this caller may use", name))
	}
	asked.Scope, asked.IDs, asked.Store = name, ids, a.store
	return scope, nil
}

// idOf reads the two forms of an ID.
func idOf(path, text string, raw []byte) (dedup.ID, error) {
	id := dedup.ID(text)
	switch {
	case text != "" && len(raw) > 0:
		return "", invalid("%sid: set either id or id_bytes, not both", path)
	case text == "":
		id = dedup.ID(raw)
	}
	switch {
	case id == "":
		return "", invalid("%sid: is required, as id or as id_bytes", path)
	case len(id) > MaxID:
		return "", invalid("%sid: must have at most %d bytes, got %d", path, MaxID, len(id))
	}
	return id, nil
}

func invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// errWaited is the cause with which a request ends that has waited for as long as it may.
var errWaited = errors.New("the store did not answer in time (api.max_wait); repeat the request")

// waiting bounds how long requests wait. A caller's own deadline, which connect has put into the
// context, counts if it comes before.
func waiting(limit time.Duration) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, limit, errWaited)
			defer cancel()
			return next(ctx, r)
		}
	}
}

// unanswered is the error of a request that the store did not answer.
func unanswered(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errWaited):
		return connect.NewError(connect.CodeUnavailable, errWaited)
	case errors.Is(cause, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded,
			errors.New("the deadline of the request is over; the outcome is unknown, repeat it"))
	case cause != nil:
		return connect.NewError(connect.CodeCanceled, cause)
	}
	return connect.NewError(connect.CodeUnavailable, err)
}
