package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/idempotency"
)

var executorBehaviours = []behaviour{
	{"200 callers of one key run its function once", race},
	{"a zombie is refused", zombie},
	{"answers that get lost change nothing", lostAnswers},
}

// Callers come through several executors, as from as many processes.
const (
	callers   = 200
	executors = 8
)

var request = idempotency.HashOf([]byte("pay 10 to Bob"))

// Executor is what callers of a key ask, as idempotency.Executor is.
type Executor interface {
	Execute(ctx context.Context, key idempotency.Key, request idempotency.Hash,
		fn func(context.Context) ([]byte, error)) (idempotency.Result, error)
}

// NewExecutor makes one on a store.
type NewExecutor func(t *testing.T, store idempotency.Store) Executor

// RunExecutor checks an executor that is not the package's own, on stores that open returns. The
// suite reaches behind it to the store, whose keys have the namespace storetest.
func RunExecutor(
	t *testing.T, open func(t *testing.T) idempotency.Store, executor NewExecutor,
) {
	runAll(t, executorBehaviours, func(t *testing.T) *subject {
		return &subject{Store: open(t), executor: executor}
	})
}

func (s *subject) newExecutor(
	t *testing.T, store idempotency.Store, options idempotency.Options,
) Executor {
	t.Helper()
	if s.executor != nil {
		return s.executor(t, store)
	}
	options.StoreTimeout = patience
	executor, err := idempotency.New(store, options)
	if err != nil {
		t.Fatal(err)
	}
	return executor
}

func race(t *testing.T, s *subject) {
	var runs atomic.Int32
	results := s.callAll(t, newKey(), idempotency.Options{},
		func(ctx context.Context) ([]byte, error) {
			token, _ := idempotency.Token(ctx)
			return fmt.Appendf(nil, "receipt %d of token %d", runs.Add(1), token), nil
		})
	wantOne(t, results, &runs)
}

// callAll returns the results of all callers.
func (s *subject) callAll(
	t *testing.T, key idempotency.Key, options idempotency.Options,
	fn func(context.Context) ([]byte, error),
) []idempotency.Result {
	t.Helper()
	var (
		group   errgroup.Group
		results = make([]idempotency.Result, callers)
		many    [executors]Executor
	)
	for n := range many {
		many[n] = s.newExecutor(t, s, options)
	}
	for n := range results {
		group.Go(func() (err error) {
			results[n], err = many[n%executors].Execute(t.Context(), key, request, fn)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return results
}

// wantOne checks that one caller ran the function and all have its response.
func wantOne(t *testing.T, results []idempotency.Result, runs *atomic.Int32) {
	t.Helper()
	own := 0
	for _, r := range results {
		if !r.Replayed {
			own++
		}
		if string(r.Response) != string(results[0].Response) || r.Token != results[0].Token {
			t.Fatalf("two responses: %q and %q", r.Response, results[0].Response)
		}
	}
	if own != 1 || runs.Load() != 1 {
		t.Errorf("the function ran %d times, %d callers say that they ran it, want one",
			runs.Load(), own)
	}
}

// zombie loses its key while its function runs, and must not replace what its successor recorded.
func zombie(t *testing.T, s *subject) {
	key := newKey()
	executor := s.newExecutor(t, s, idempotency.Options{})
	_, err := executor.Execute(t.Context(), key, request,
		func(ctx context.Context) ([]byte, error) {
			standing := s.get(t, key)
			next := started()
			next.Revision, next.Token, next.Request = standing.Revision+1, standing.Token+1, request
			s.mustSwap(t, key, standing.Version, next, time.Hour)
			s.mustSwap(t, key, next.Version, completed(next, "the successor's"), time.Hour)
			return []byte("the zombie's"), nil
		})
	var unrecorded *idempotency.UnrecordedError
	if !errors.As(err, &unrecorded) || !errors.Is(err, idempotency.ErrLeaseLost) ||
		string(unrecorded.Response) != "the zombie's" {
		t.Errorf("the zombie got %v", err)
	}
	result, err := executor.Execute(t.Context(), key, request, nil)
	if err != nil || string(result.Response) != "the successor's" || !result.Replayed ||
		result.Token <= unrecorded.Token {
		t.Errorf("a later caller got %q, %+v, %v", result.Response, result, err)
	}
}

// flaky reports every other answer of Swap as lost.
type flaky struct {
	idempotency.Store
	calls atomic.Int32
}

var errLost = errors.New("the answer was lost")

func (f *flaky) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (idempotency.Record, bool, error) {
	current, done, err := f.Store.Swap(ctx, key, old, next, ttl)
	if err == nil && f.calls.Add(1)%2 == 1 {
		return idempotency.Record{}, false, errLost
	}
	return current, done, err
}

func lostAnswers(t *testing.T, s *subject) {
	key := newKey()
	store := &flaky{Store: s}
	executor := s.newExecutor(t, store, idempotency.Options{})
	runs := 0
	for n := range 3 {
		result, err := executor.Execute(t.Context(), key, request,
			func(context.Context) ([]byte, error) {
				runs++
				return []byte("receipt"), nil
			})
		if err != nil || string(result.Response) != "receipt" || result.Replayed != (n > 0) ||
			runs != 1 {
			t.Fatalf("call %d after %d runs: %+v, %v", n, runs, result, err)
		}
	}
	if store.calls.Load() < 6 {
		t.Errorf("only %d swaps", store.calls.Load())
	}
}
