package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/idempotency"
)

// keys is the IdempotencyService. The namespace of a key is the name of its scope.
type keys struct {
	access
	executor *idempotency.Executor
	metrics  *Metrics
}

var _ kdedupv1connect.IdempotencyServiceHandler = (*keys)(nil)

// retryAfter is when a caller should ask again for a key that another one has.
const retryAfter = time.Second

func newKeys(o Options) (*keys, error) {
	executor, err := idempotency.New(o.Keys, idempotency.Options{
		Wait: idempotency.NoWait, MaxResponse: o.Limits.Bytes, Logger: o.Logger,
	})
	return &keys{access{o.Scopes, o.Kinds.Keys}, executor, o.Metrics}, err
}

// keyless refuses what needs keys where none are kept.
func keyless() connect.UnaryInterceptorFunc {
	return func(connect.UnaryFunc) connect.UnaryFunc {
		return func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
			return nil, connect.NewError(connect.CodeUnimplemented,
				errors.New("this kdedup keeps no keys: set api.keys, and restart it"))
		}
	}
}

// What Begin answers, in metrics and spans.
const (
	outcomeAcquired   = "acquired"
	outcomeInProgress = "in_progress"
	outcomeCompleted  = "completed"
	outcomeFailed     = "failed"
	outcomeConflict   = "conflict"
)

// Begin implements IdempotencyService.
func (k *keys) Begin(
	ctx context.Context, r *connect.Request[kdedupv1.BeginRequest],
) (*connect.Response[kdedupv1.BeginResponse], error) {
	scope, err := k.scope(ctx, r.Msg.GetScope(), 1)
	if err != nil {
		return nil, err
	}
	terms, err := termsOf(r.Msg, scope)
	if err != nil {
		return nil, err
	}
	var request idempotency.Hash
	if n := copy(request[:], r.Msg.GetRequestHash()); n != len(request) ||
		len(r.Msg.GetRequestHash()) != n {
		return nil, invalid("request_hash: must have %d bytes, those of a SHA-256, got %d",
			len(request), len(r.Msg.GetRequestHash()))
	}
	hold, held, result, err := k.executor.Begin(ctx,
		idempotency.Key{Namespace: scope.Name, ID: r.Msg.GetKey()}, request, terms)
	response := &kdedupv1.BeginResponse{}
	failed := &idempotency.FailedError{}
	outcome := outcomeCompleted
	switch {
	case held:
		outcome = outcomeAcquired
		acquired := &kdedupv1.Acquired{FencingToken: hold.Token(),
			Held: durationpb.New(hold.Lease())}
		acquired.Lease, _ = hold.AppendBinary(nil)
		k.metrics.inHand.took(scope.Name, r.Msg.GetKey(), hold.Lease())
		response.Outcome = &kdedupv1.BeginResponse_Acquired{Acquired: acquired}
	case errors.As(err, &failed):
		outcome = outcomeFailed
		response.Outcome = &kdedupv1.BeginResponse_Failed{
			Failed: &kdedupv1.Failed{Message: failed.Message}}
	case errors.Is(err, idempotency.ErrKeyReused):
		outcome = outcomeConflict
		response.Outcome = &kdedupv1.BeginResponse_Conflict{Conflict: &kdedupv1.Conflict{}}
	case errors.Is(err, idempotency.ErrInProgress): // a caller who is gone does not hear it
		outcome = outcomeInProgress
		response.Outcome = &kdedupv1.BeginResponse_InProgress{InProgress: &kdedupv1.InProgress{
			RetryAfter: durationpb.New(min(retryAfter, terms.Lease))}}
	case err != nil:
		return nil, keyError(ctx, err)
	default:
		response.Outcome = &kdedupv1.BeginResponse_Completed{Completed: &kdedupv1.Completed{
			Response: result.Response, FencingToken: result.Token}}
	}
	askedOf(ctx).Outcome = outcome
	k.metrics.begins.WithLabelValues(scope.Name, outcome).Inc()
	return connect.NewResponse(response), nil
}

// defaultHold is that of a Begin that tells none.
const defaultHold = 30 * time.Second

// termsOf reads what a caller asks for. An outcome is never forgotten before the hold is over.
func termsOf(r *kdedupv1.BeginRequest, scope dedup.Scope) (t idempotency.Terms, err error) {
	t = idempotency.Terms{TTL: scope.TTL, Lease: defaultHold, Wait: idempotency.NoWait}
	for _, asked := range []struct {
		name  string
		value *durationpb.Duration
		field *time.Duration
		least time.Duration
	}{
		{"keep", r.GetKeep(), &t.TTL, time.Second},
		{"hold", r.GetHold(), &t.Lease, 10 * time.Millisecond},
		{"wait", r.GetWait(), &t.Wait, 0},
	} {
		if asked.value == nil {
			continue
		}
		if err := asked.value.CheckValid(); err != nil {
			return t, invalid("%s: %v", asked.name, err)
		}
		value := asked.value.AsDuration()
		if value < asked.least || value > scope.TTL {
			return t, invalid("%s: must be %v to %v, the ttl of the scope, got %v", asked.name,
				asked.least, scope.TTL, value)
		}
		if value > 0 || asked.least > 0 {
			*asked.field = value.Truncate(time.Millisecond)
		}
	}
	t.Lease = min(t.Lease, scope.TTL)
	t.TTL = max(t.TTL, t.Lease)
	return t, nil
}

// Complete implements IdempotencyService.
func (k *keys) Complete(
	ctx context.Context, r *connect.Request[kdedupv1.CompleteRequest],
) (*connect.Response[kdedupv1.CompleteResponse], error) {
	key, hold, err := k.held(ctx, r.Msg)
	if err == nil {
		err = keyError(ctx, k.executor.Complete(ctx, key, hold, r.Msg.GetResponse()))
	}
	if err != nil {
		return nil, err
	}
	k.metrics.inHand.ended(key.Namespace, key.ID)
	return connect.NewResponse(&kdedupv1.CompleteResponse{}), nil
}

// Fail implements IdempotencyService.
func (k *keys) Fail(
	ctx context.Context, r *connect.Request[kdedupv1.FailRequest],
) (*connect.Response[kdedupv1.FailResponse], error) {
	key, hold, err := k.held(ctx, r.Msg)
	if err == nil {
		err = keyError(ctx,
			k.executor.Fail(ctx, key, hold, r.Msg.GetMessage(), r.Msg.GetFinal()))
	}
	if err != nil {
		return nil, err
	}
	k.metrics.inHand.ended(key.Namespace, key.ID)
	return connect.NewResponse(&kdedupv1.FailResponse{}), nil
}

// Extend implements IdempotencyService.
func (k *keys) Extend(
	ctx context.Context, r *connect.Request[kdedupv1.ExtendRequest],
) (*connect.Response[kdedupv1.ExtendResponse], error) {
	key, hold, err := k.held(ctx, r.Msg)
	if err != nil {
		return nil, err
	}
	if hold, err = k.executor.Extend(ctx, key, hold); err != nil {
		return nil, keyError(ctx, err)
	}
	k.metrics.inHand.took(key.Namespace, key.ID, hold.Lease())
	response := &kdedupv1.ExtendResponse{Held: durationpb.New(hold.Lease())}
	response.Lease, _ = hold.AppendBinary(nil)
	return connect.NewResponse(response), nil
}

// held reads whose key a request is about, and by which lease.
func (k *keys) held(ctx context.Context, r interface {
	GetScope() string
	GetKey() string
	GetLease() []byte
}) (key idempotency.Key, hold idempotency.Hold, err error) {
	scope, err := k.scope(ctx, r.GetScope(), 1)
	if err != nil {
		return key, hold, err
	}
	key = idempotency.Key{Namespace: scope.Name, ID: r.GetKey()}
	if key.ID == "" {
		return key, hold, invalid("key: is required")
	}
	if hold, err = idempotency.ParseHold(r.GetLease()); err != nil {
		return key, hold, invalid("lease: must be that of Begin or of the last Extend")
	}
	return key, hold, nil
}

// errLost tells the owner of a lease what has become of it.
var errLost = errors.New("lease: it was lost, so nothing was recorded: it was over and another " +
	"caller has the key, or the key has an outcome already")

// keyError gives errors of the executor their codes.
func keyError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, idempotency.ErrLeaseLost):
		return connect.NewError(connect.CodeFailedPrecondition, errLost)
	case errors.Is(err, idempotency.ErrInvalidKey):
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("key: %w", err))
	case errors.Is(err, idempotency.ErrTerms), errors.Is(err, idempotency.ErrResponseTooLarge):
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return unanswered(ctx, err)
}
