package idempotency

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A call that began before a caller came may know less than the caller does.
func TestCallersShareACallThatBeganAfterTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, key := newTurns(), Key{Namespace: "n", ID: "k"}
		var stored, calls atomic.Int64
		ask := func() (Record, bool, error) {
			calls.Add(1)
			r := Record{Token: stored.Load()}
			time.Sleep(time.Second) // of the bubble
			return r, true, nil
		}
		var callers sync.WaitGroup
		begin := func(n int, know int64) {
			for range n {
				callers.Go(func() {
					r, _, err := turns.take(t.Context(), key, ask)
					if err != nil || r.Token < know {
						t.Errorf("%d, %v; want at least %d", r.Token, err, know)
					}
				})
			}
			synctest.Wait()
		}
		begin(100, 0)
		stored.Store(7)
		begin(100, 7)
		callers.Wait()
		if n := calls.Load(); n > 3 {
			t.Errorf("200 callers made %d calls", n)
		}
		if len(turns.keys) > 0 {
			t.Errorf("it keeps %v", turns.keys)
		}
	})
}

func TestACallerThatGivesUpLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, key := newTurns(), Key{Namespace: "n", ID: "k"}
		gaveUp := errors.New("gave up")
		var callers sync.WaitGroup
		for i := range 20 {
			ctx, cancel := context.WithCancelCause(t.Context())
			callers.Go(func() {
				r, _, err := turns.take(ctx, key, func() (Record, bool, error) {
					select {
					case <-ctx.Done():
						return Record{}, false, context.Cause(ctx)
					case <-time.After(time.Second):
						return Record{Token: 1}, true, nil
					}
				})
				if early := i%2 == 0; early != errors.Is(err, gaveUp) || !early && r.Token != 1 {
					t.Errorf("caller %d: %d, %v", i, r.Token, err)
				}
			})
			if i%2 == 0 {
				time.AfterFunc(time.Duration(i)*100*time.Millisecond/2, func() { cancel(gaveUp) })
			} else {
				defer cancel(nil)
			}
		}
		callers.Wait()
		if len(turns.keys) > 0 {
			t.Errorf("it keeps %v", turns.keys)
		}
	})
}

func TestAStoreThatFailsFailsForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, key, down := newTurns(), Key{Namespace: "n", ID: "k"}, errors.New("down")
		var calls atomic.Int64
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				_, _, err := turns.take(t.Context(), key, func() (Record, bool, error) {
					calls.Add(1)
					time.Sleep(time.Second) // of the bubble
					return Record{}, false, down
				})
				if !errors.Is(err, down) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if n := calls.Load(); n > 2 {
			t.Errorf("50 callers waited for %d failures, one after the other", n)
		}
	})
}

func TestACallThatPanicsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, key := newTurns(), Key{Namespace: "n", ID: "k"}
		var panicked atomic.Int64
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				defer func() {
					if recover() != nil {
						panicked.Add(1)
					}
				}()
				r, _, err := turns.take(t.Context(), key, func() (Record, bool, error) {
					time.Sleep(time.Second) // of the bubble
					if panicked.Load() == 0 {
						panic("a broken store")
					}
					return Record{Token: 1}, true, nil
				})
				if err != nil || r.Token != 1 {
					t.Errorf("%d, %v", r.Token, err)
				}
			})
		}
		callers.Wait()
		if panicked.Load() != 1 {
			t.Errorf("%d panicked", panicked.Load())
		}
	})
}
