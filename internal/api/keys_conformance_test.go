package api

import (
	"context"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
	"github.com/kdedup/kdedup/idempotency/storetest"
)

// What the suite says of executions holds for callers of the API: many of one key, an owner that
// was replaced, a store whose answers get lost. The suite reaches behind the API to the store.
func TestTheAPIKeepsThePromisesOfAnExecutor(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "gRPC" {
				t.Skip("one protocol is enough for -short")
			}
			storetest.RunExecutor(t,
				func(*testing.T) idempotency.Store { return memory.New() },
				func(t *testing.T, store idempotency.Store) storetest.Executor {
					server, _ := inMemory(t, Options{Keys: store}, "storetest")
					return &remoteExecutor{keysOf(t, server.URL(), options...)}
				})
		})
	}
}

// remoteExecutor does what a program in another language does..
type remoteExecutor struct {
	client kdedupv1connect.IdempotencyServiceClient
}

// Execute implements storetest.Executor.
func (r *remoteExecutor) Execute(
	ctx context.Context, key idempotency.Key, request idempotency.Hash,
	fn func(context.Context) ([]byte, error),
) (idempotency.Result, error) {
	for {
		answer, err := r.client.Begin(ctx, connect.NewRequest(&kdedupv1.BeginRequest{
			Scope: key.Namespace, Key: key.ID, RequestHash: request[:],
			Wait: durationpb.New(longHold), Hold: durationpb.New(longHold)}))
		if err != nil {
			return idempotency.Result{}, err
		}
		if done := answer.Msg.GetCompleted(); done != nil {
			return idempotency.Result{Response: done.GetResponse(),
				Token: done.GetFencingToken(), Replayed: true}, nil
		}
		if acquired := answer.Msg.GetAcquired(); acquired != nil {
			return r.run(ctx, key, acquired, fn)
		}
	}
}

func (r *remoteExecutor) run(
	ctx context.Context, key idempotency.Key, acquired *kdedupv1.Acquired,
	fn func(context.Context) ([]byte, error),
) (idempotency.Result, error) {
	response, err := fn(ctx)
	if err != nil {
		return idempotency.Result{}, err
	}
	result := idempotency.Result{Response: response, Token: acquired.GetFencingToken()}
	_, err = r.client.Complete(ctx, connect.NewRequest(&kdedupv1.CompleteRequest{
		Scope: key.Namespace,
		Key:   key.ID, Lease: acquired.GetLease(), Response: response}))
	if connect.CodeOf(err) == connect.CodeFailedPrecondition {
		return idempotency.Result{}, &idempotency.UnrecordedError{Response: response,
			Token: result.Token, Err: idempotency.ErrLeaseLost}
	}
	return result, err
}
