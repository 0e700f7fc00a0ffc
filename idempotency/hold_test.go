package idempotency_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
)

var (
	holdKey     = idempotency.Key{Namespace: "payments", ID: "key"}
	holdRequest = idempotency.HashOf([]byte("pay"))
	holdTerms   = idempotency.Terms{Lease: 10 * time.Second, TTL: time.Hour,
		Wait: idempotency.NoWait}
)

// caller is a program behind an API.
type caller struct {
	t        *testing.T
	executor *idempotency.Executor
}

func newCaller(t *testing.T, store idempotency.Store) caller {
	t.Helper()
	executor, err := idempotency.New(store, idempotency.Options{MaxResponse: 100})
	if err != nil {
		t.Fatal(err)
	}
	return caller{t, executor}
}

func (c caller) begin() (idempotency.Hold, bool, idempotency.Result, error) {
	return c.executor.Begin(c.t.Context(), holdKey, holdRequest, holdTerms)
}

func (c caller) mustHold() idempotency.Hold {
	c.t.Helper()
	hold, held, _, err := c.begin()
	if err != nil || !held {
		c.t.Fatalf("the key is not free: %v", err)
	}
	return hold
}

func (c caller) wantInProgress() {
	c.t.Helper()
	if _, held, _, err := c.begin(); held || !errors.Is(err, idempotency.ErrInProgress) {
		c.t.Fatalf("held %t, %v, want a key in progress", held, err)
	}
}

func (c caller) wantResponse(response string) {
	c.t.Helper()
	_, held, result, err := c.begin()
	if err != nil || held || string(result.Response) != response || !result.Replayed {
		c.t.Errorf("held %t, %+v, %v, want the response %q", held, result, err, response)
	}
}

func TestAHoldIsCompletedOnce(t *testing.T) {
	store := memory.New()
	c, other := newCaller(t, store), newCaller(t, store)
	hold := c.mustHold()
	other.wantInProgress()
	if _, _, _, err := other.executor.Begin(t.Context(), holdKey,
		idempotency.HashOf([]byte("pay more")), holdTerms); !errors.Is(err,
		idempotency.ErrKeyReused) {
		t.Errorf("another request: %v", err)
	}
	for range 2 { // it may be repeated, by any process
		if err := other.executor.Complete(t.Context(), holdKey, hold,
			[]byte("receipt")); err != nil {
			t.Error(err)
		}
		other.wantResponse("receipt")
	}
	if err := c.executor.Complete(t.Context(), holdKey, hold, []byte("another")); !errors.Is(err,
		idempotency.ErrLeaseLost) {
		t.Errorf("a second response: %v", err)
	}
	if _, err := c.executor.Extend(t.Context(), holdKey, hold); !errors.Is(err,
		idempotency.ErrLeaseLost) {
		t.Errorf("an extension after the end: %v", err)
	}
	c.wantResponse("receipt")
}

func TestAnExtendedHoldIsEndedByEitherOfItsForms(t *testing.T) {
	for _, by := range []int{0, 1} {
		c := newCaller(t, memory.New())
		holds := []idempotency.Hold{c.mustHold()}
		next, err := c.executor.Extend(t.Context(), holdKey, holds[0])
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, next)
		for range 2 {
			if err := c.executor.Complete(t.Context(), holdKey, holds[by],
				[]byte("receipt")); err != nil {
				t.Errorf("form %d: %v", by, err)
			}
		}
		c.wantResponse("receipt")
	}
}

func TestAFailedHoldIsFinalOrFree(t *testing.T) {
	c := newCaller(t, memory.New())
	first := c.mustHold()
	if err := c.executor.Fail(t.Context(), holdKey, first, "", false); err != nil {
		t.Fatal(err)
	}
	second := c.mustHold()
	if second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	if err := c.executor.Fail(t.Context(), holdKey, first, "late", true); !errors.Is(err,
		idempotency.ErrLeaseLost) {
		t.Errorf("a hold that was given up: %v", err)
	}
	if err := c.executor.Fail(t.Context(), holdKey, second, "declined", true); err != nil {
		t.Fatal(err)
	}
	failed := &idempotency.FailedError{}
	if _, _, _, err := c.begin(); !errors.As(err, &failed) || failed.Message != "declined" {
		t.Errorf("after a final failure: %v", err)
	}
}

func TestAHoldThatWasTakenOverEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		dead, next := newCaller(t, store), newCaller(t, store)
		hold := dead.mustHold()
		next.wantInProgress()
		time.Sleep(holdTerms.Lease - time.Second)
		hold, err := dead.executor.Extend(t.Context(), holdKey, hold)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // beyond the first lease
		next.wantInProgress()
		time.Sleep(holdTerms.Lease)
		successor := next.mustHold()
		if successor.Token() <= hold.Token() {
			t.Errorf("token %d after %d", successor.Token(), hold.Token())
		}
		for name, err := range map[string]error{
			"complete": dead.executor.Complete(t.Context(), holdKey, hold, []byte("zombie's")),
			"fail":     dead.executor.Fail(t.Context(), holdKey, hold, "", false),
		} {
			if !errors.Is(err, idempotency.ErrLeaseLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := next.executor.Complete(t.Context(), holdKey, successor,
			[]byte("receipt")); err != nil {
			t.Fatal(err)
		}
		dead.wantResponse("receipt")
	})
}

func TestTermsThatCannotBeKeptAreRefused(t *testing.T) {
	c := newCaller(t, memory.New())
	for name, terms := range map[string]idempotency.Terms{
		"a short lease": {Lease: time.Millisecond},
		"a ttl below":   {Lease: time.Minute, TTL: time.Second},
	} {
		if _, held, _, err := c.executor.Begin(t.Context(), holdKey, holdRequest,
			terms); held || !errors.Is(err, idempotency.ErrTerms) {
			t.Errorf("%s: held %t, %v", name, held, err)
		}
	}
	hold := c.mustHold()
	if err := c.executor.Complete(t.Context(), holdKey, hold,
		make([]byte, 101)); !errors.Is(err, idempotency.ErrResponseTooLarge) {
		t.Errorf("a large response: %v", err)
	}
}

func FuzzParseHold(f *testing.F) {
	executor, err := idempotency.New(memory.New(), idempotency.Options{})
	if err != nil {
		f.Fatal(err)
	}
	hold, _, _, err := executor.Begin(f.Context(), holdKey, holdRequest, holdTerms)
	if err != nil {
		f.Fatal(err)
	}
	whole, _ := hold.AppendBinary(nil)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		hold, err := idempotency.ParseHold(data)
		if err != nil {
			if !errors.Is(err, idempotency.ErrRecord) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		again, _ := hold.AppendBinary(nil)
		if !bytes.Equal(again, data) || hold.Lease() <= 0 {
			t.Errorf("%x became %x, a lease of %v", data, again, hold.Lease())
		}
	})
}
