package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key     = idempotency.Key{Namespace: "payments", ID: "8e03978e"}
	request = idempotency.HashOf([]byte("10 to Bob"))
)

const lease = 30 * time.Second

func newExecutor(
	t *testing.T, store idempotency.Store, options idempotency.Options,
) *idempotency.Executor {
	t.Helper()
	executor, err := idempotency.New(store, options)
	if err != nil {
		t.Fatal(err)
	}
	return executor
}

// answers is a function that returns the text.
func answers(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

func fails(err error) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return nil, err }
}

// never is a function that must not run.
func never(t *testing.T) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		t.Error("the function ran")
		return nil, nil
	}
}

func wantResponse(t *testing.T, result idempotency.Result, err error, want string, replayed bool) {
	t.Helper()
	if err != nil || string(result.Response) != want || result.Replayed != replayed ||
		result.Token == 0 {
		t.Fatalf("got %q, %+v, %v; want %q, replayed %t", result.Response, result, err, want,
			replayed)
	}
}

func TestLaterCallersGetTheRecordedResponse(t *testing.T) {
	e := newExecutor(t, memory.New(), idempotency.Options{})
	first, err := e.Execute(t.Context(), key, request, answers("receipt"))
	wantResponse(t, first, err, "receipt", false)
	for range 3 {
		again, err := e.Execute(t.Context(), key, request, never(t))
		wantResponse(t, again, err, "receipt", true)
		if again.Token != first.Token {
			t.Errorf("token %d, want that of the execution, %d", again.Token, first.Token)
		}
	}
}

func TestAnotherRequestWithTheSameKeyIsAnErrorInEveryState(t *testing.T) {
	other := idempotency.HashOf([]byte("10 to Eve"))
	for name, fn := range map[string]func(context.Context) ([]byte, error){
		"completed": answers("receipt"),
		"failed":    fails(idempotency.Final(errors.New("declined"))),
		"released":  fails(errors.New("try again")),
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(t, memory.New(), idempotency.Options{})
			_, _ = e.Execute(t.Context(), key, request, fn)
			if _, err := e.Execute(t.Context(), key, other, never(t)); !errors.Is(err,
				idempotency.ErrKeyReused) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("started", func(t *testing.T) {
		e := newExecutor(t, memory.New(), idempotency.Options{})
		_, err := e.Execute(t.Context(), key, request, func(ctx context.Context) ([]byte, error) {
			if _, err := e.Execute(ctx, key, other, never(t)); !errors.Is(err,
				idempotency.ErrKeyReused) {
				t.Errorf("got %v", err)
			}
			return nil, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestFailuresAreFinalOrNotAsTheyAreMarked(t *testing.T) {
	broken := errors.New("connection reset")
	for _, row := range []struct {
		name    string
		options idempotency.Options
		err     error
		final   bool
	}{
		{"unmarked", idempotency.Options{}, broken, false},
		{"final", idempotency.Options{}, idempotency.Final(broken), true},
		{"final and wrapped", idempotency.Options{},
			fmt.Errorf("pay: %w", idempotency.Final(broken)), true},
		{"the outermost mark counts", idempotency.Options{},
			idempotency.Retryable(idempotency.Final(broken)), false},
		{"unmarked where failures are final", idempotency.Options{FailuresAreFinal: true}, broken,
			true},
		{"retryable where failures are final", idempotency.Options{FailuresAreFinal: true},
			idempotency.Retryable(broken), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newExecutor(t, memory.New(), row.options)
			_, err := e.Execute(t.Context(), key, request, fails(row.err))
			if !errors.Is(err, broken) || errors.Is(err, idempotency.ErrFailed) != row.final {
				t.Errorf("first caller got %v", err)
			}
			if !row.final {
				again, err := e.Execute(t.Context(), key, request, answers("receipt"))
				wantResponse(t, again, err, "receipt", false)
				return
			}
			_, err = e.Execute(t.Context(), key, request, never(t))
			var failed *idempotency.FailedError
			if !errors.As(err, &failed) || failed.Message != row.err.Error() ||
				failed.Cause != nil {
				t.Errorf("second caller got %v", err)
			}
		})
	}
	if idempotency.Final(nil) != nil || idempotency.Retryable(nil) != nil {
		t.Error("a mark made an error of nil")
	}
}

// A panic counts as an unmarked error. So does the end of the goroutine.
func TestAPanicReleasesTheKeyAndGoesOn(t *testing.T) {
	e := newExecutor(t, memory.New(), idempotency.Options{})
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
		}()
		_, _ = e.Execute(t.Context(), key, request, func(context.Context) ([]byte, error) {
			panic("boom")
		})
	}()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = e.Execute(t.Context(), key, request, func(context.Context) ([]byte, error) {
			runtime.Goexit()
			return nil, nil
		})
	})
	wg.Wait()
	result, err := e.Execute(t.Context(), key, request, answers("receipt"))
	wantResponse(t, result, err, "receipt", false)

	final := newExecutor(t, memory.New(), idempotency.Options{FailuresAreFinal: true})
	func() {
		defer func() { _ = recover() }()
		_, _ = final.Execute(t.Context(), key, request, func(context.Context) ([]byte, error) {
			panic("boom")
		})
	}()
	if _, err := final.Execute(t.Context(), key, request, never(t)); !errors.Is(err,
		idempotency.ErrFailed) {
		t.Errorf("got %v", err)
	}
}

func TestTokensGrowFromOneExecutionToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, memory.New(), idempotency.Options{TTL: time.Minute})
		var tokens []int64
		take := func(ctx context.Context) ([]byte, error) {
			token, ok := idempotency.Token(ctx)
			if !ok {
				t.Error("no token")
			}
			tokens = append(tokens, token)
			return nil, errors.New("again")
		}
		for range 3 {
			_, _ = e.Execute(t.Context(), key, request, take)
		}
		time.Sleep(time.Minute) // of the bubble, as below: the key is forgotten
		_, _ = e.Execute(t.Context(), key, request, take)
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Errorf("tokens %v", tokens)
			}
		}
		if _, ok := idempotency.Token(t.Context()); ok || len(tokens) != 4 {
			t.Errorf("%d tokens, one outside of an execution: %t", len(tokens), ok)
		}
	})
}

func TestAKeyIsForgottenAfterTheTTLOfItsNamespace(t *testing.T) {
	for namespace, ttl := range map[string]time.Duration{"payments": time.Hour,
		"mails": 48 * time.Hour, "others": 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			e := newExecutor(t, memory.New(),
				idempotency.Options{NamespaceTTL: func(namespace string) time.Duration {
					return map[string]time.Duration{"payments": time.Hour,
						"mails": 48 * time.Hour}[namespace]
				}})
			key := idempotency.Key{Namespace: namespace, ID: "1"}
			result, err := e.Execute(t.Context(), key, request, answers("first"))
			wantResponse(t, result, err, "first", false)
			time.Sleep(ttl - time.Second) // of the bubble
			result, err = e.Execute(t.Context(), key, request, never(t))
			wantResponse(t, result, err, "first", true)
			time.Sleep(time.Second) // of the bubble
			result, err = e.Execute(t.Context(), key, request, answers("second"))
			wantResponse(t, result, err, "second", false)
		})
	}
}

func TestAResponseThatIsTooLargeFailsTheKeyAndReachesItsCaller(t *testing.T) {
	e := newExecutor(t, memory.New(), idempotency.Options{MaxResponse: 10})
	_, err := e.Execute(t.Context(), key, request, answers("eleven long"))
	var unrecorded *idempotency.UnrecordedError
	if !errors.As(err, &unrecorded) || !errors.Is(err, idempotency.ErrResponseTooLarge) ||
		string(unrecorded.Response) != "eleven long" {
		t.Errorf("got %v", err)
	}
	if _, err := e.Execute(t.Context(), key, request, never(t)); !errors.Is(
		err, idempotency.ErrFailed) || !strings.Contains(err.Error(), "11 bytes") {
		t.Errorf("a later caller got %v", err)
	}
}

func TestAResponseOfAnyTypeComesBackAsItWas(t *testing.T) {
	type receipt struct {
		Number int
		Lines  []string
	}
	e := newExecutor(t, memory.New(), idempotency.Options{})
	want := receipt{7, []string{"10 to Bob"}}
	order := map[string]any{"amount": 10, "to": "Bob"}
	for n := range 2 {
		got, replayed, err := idempotency.ExecuteJSON(t.Context(), e, key, order,
			func(context.Context) (receipt, error) {
				return want, nil
			})
		if diff := cmp.Diff(want, got); err != nil || diff != "" || replayed != (n == 1) {
			t.Errorf("call %d: %v, replayed %t, %s", n, err, replayed, diff)
		}
	}
	if _, _, err := idempotency.ExecuteJSON(t.Context(), e, key, "other",
		func(context.Context) (receipt, error) {
			return want, nil
		}); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("another request: %v", err)
	}
	if _, _, err := idempotency.ExecuteJSON(t.Context(), e, key, order,
		func(context.Context) (int, error) {
			return 0, nil
		}); err == nil {
		t.Error("a response of another type was decoded")
	}
	channels := func(context.Context) (chan int, error) { return nil, nil }
	if _, _, err := idempotency.ExecuteJSON(
		t.Context(), e, idempotency.Key{Namespace: "payments", ID: "c"}, 1, channels,
	); !errors.Is(err, idempotency.ErrFailed) {
		t.Errorf("a response without JSON: %v", err)
	}
}

func TestBadKeysAndOptionsAreNamed(t *testing.T) {
	e := newExecutor(t, memory.New(), idempotency.Options{})
	for text, key := range map[string]idempotency.Key{
		"the ID is empty":        {},
		"at most 1024":           {ID: strings.Repeat("i", 1025)},
		"the namespace is empty": {ID: "1"},
		"at most 255 byte":       {Namespace: strings.Repeat("n", 256), ID: "1"},
	} {
		if _, err := e.Execute(t.Context(), key, request, never(t)); !errors.Is(
			err, idempotency.ErrInvalidKey) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	for text, options := range map[string]idempotency.Options{
		"Lease: must be at least 10ms":                   {Lease: time.Millisecond},
		"Lease: must be whole milliseconds":              {Lease: 10*time.Millisecond + 1},
		"TTL: must be at least the lease, got 1s":        {TTL: time.Second},
		"Wait: must be positive, zero or NoWait, got -5": {Wait: -5 * time.Second},
		"Poll: must be positive":                         {Poll: -1},
		"StoreTimeout: must be positive":                 {StoreTimeout: -1},
		"MaxResponse: must be positive":                  {MaxResponse: -1},
	} {
		if _, err := idempotency.New(memory.New(), options); err == nil ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}
