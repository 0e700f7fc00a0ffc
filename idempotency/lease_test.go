package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
)

// outage is a store that can be cut off, and that can apply a swap without saying so.
type outage struct {
	idempotency.Store
	down       atomic.Bool // nothing arrives
	unanswered atomic.Bool // swaps are done, and then reported as failed
}

var errDown = errors.New("connection refused")

func (o *outage) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	if o.down.Load() {
		return idempotency.Record{}, errDown
	}
	return o.Store.Get(ctx, key)
}

func (o *outage) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (idempotency.Record, bool, error) {
	if o.down.Load() {
		return idempotency.Record{}, false, errDown
	}
	current, done, err := o.Store.Swap(ctx, key, old, next, ttl)
	if o.unanswered.Load() {
		return idempotency.Record{}, false, errDown
	}
	return current, done, err
}

// abandon leaves a started record behind, as a process does that dies.
func abandon(t *testing.T, store idempotency.Store) idempotency.Record {
	t.Helper()
	record := idempotency.Record{
		Version: idempotency.Version{Owner: idempotency.Owner{1}, Revision: 1},
		State:   idempotency.Started,
		// by a clock that is wrong
		Token: time.Now().Add(time.Hour).UnixMilli(), Lease: lease, Request: request,
	}
	if _, done, err := store.Swap(
		t.Context(), key, idempotency.Version{}, record, 24*time.Hour,
	); !done || err != nil {
		t.Fatal(done, err)
	}
	return record
}

func TestADeadOwnerIsTakenOverAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		dead := abandon(t, store)
		time.Sleep(10 * lease) // of the bubble, as below: nobody looked, so nobody can know
		begin := time.Now()
		result, err := newExecutor(t, store, idempotency.Options{Lease: time.Second}).Execute(
			t.Context(), key, request, answers("receipt"))
		wantResponse(t, result, err, "receipt", false)
		if waited := time.Since(begin); waited < lease || waited > lease+time.Second {
			t.Errorf("taken over after %v, want the owner's lease of %v", waited, lease)
		}
		if result.Token <= dead.Token {
			t.Errorf("token %d, want more than the dead owner's %d", result.Token, dead.Token)
		}
	})
}

// Callers who do not wait take over as well, by what earlier calls saw.
func TestADeadOwnerIsTakenOverByCallersWhoDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		abandon(t, store)
		e := newExecutor(t, store, idempotency.Options{}).WithWait(idempotency.NoWait)
		for range 3 {
			if _, err := e.Execute(t.Context(), key, request, never(t)); !errors.Is(err,
				idempotency.ErrInProgress) {
				t.Fatalf("got %v", err)
			}
			time.Sleep(lease / 3) // of the bubble
		}
		result, err := e.Execute(t.Context(), key, request, answers("receipt"))
		wantResponse(t, result, err, "receipt", false)
	})
}

func TestALivingOwnerKeepsItsKeyHoweverLongItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		e := newExecutor(t, store, idempotency.Options{TTL: lease})
		var wg sync.WaitGroup
		wg.Go(func() {
			result, err := e.Execute(t.Context(), key, request,
				func(ctx context.Context) ([]byte, error) {
					time.Sleep(10 * lease) // of the bubble
					return []byte("receipt"), ctx.Err()
				})
			wantResponse(t, result, err, "receipt", false)
		})
		synctest.Wait()
		result, err := newExecutor(t, store, idempotency.Options{}).Execute(t.Context(), key,
			request, never(t))
		wantResponse(t, result, err, "receipt", true)
		wg.Wait()
	})
}

func TestAWaitIsBounded(t *testing.T) {
	brief := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 3*time.Second)
	}
	forever := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(ctx)
	}
	for _, row := range []struct {
		name   string
		wait   time.Duration
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		want   error
		waited time.Duration
	}{
		{"by the context", 0, brief, context.DeadlineExceeded, 3 * time.Second},
		{"by the option", 2 * time.Second, forever, idempotency.ErrInProgress, 2 * time.Second},
		{"to nothing", idempotency.NoWait, forever, idempotency.ErrInProgress, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				abandon(t, store)
				ctx, cancel := row.ctx(t.Context())
				defer cancel()
				begin := time.Now()
				_, err := newExecutor(t, store, idempotency.Options{Wait: row.wait}).Execute(ctx,
					key, request, never(t))
				if !errors.Is(err, row.want) || !errors.Is(err, idempotency.ErrInProgress) ||
					time.Since(begin) != row.waited {
					t.Errorf("got %v after %v", err, time.Since(begin))
				}
			})
		})
	}
}

// The owner gives up before anybody can take over, and its successor's response is what counts.
func TestAnOwnerThatCannotRenewIsCancelledAndRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		store := &outage{Store: inner}
		owner, successor := newExecutor(t, store, idempotency.Options{}),
			newExecutor(t, inner, idempotency.Options{})
		var wg sync.WaitGroup
		_, err := owner.Execute(t.Context(), key, request,
			func(ctx context.Context) ([]byte, error) {
				time.Sleep(lease / 2) // and renews once
				store.down.Store(true)
				wg.Go(func() {
					result, err := successor.Execute(t.Context(), key, request,
						answers("the successor's"))
					wantResponse(t, result, err, "the successor's", false)
					if context.Cause(ctx) != idempotency.ErrLeaseLost {
						t.Errorf("taken over from an owner whose context says %v",
							context.Cause(ctx))
					}
				})
				begin := time.Now()
				<-ctx.Done()
				if context.Cause(ctx) != idempotency.ErrLeaseLost || time.Since(begin) > lease {
					t.Errorf("cancelled by %v after %v", context.Cause(ctx), time.Since(begin))
				}
				time.Sleep(10 * lease) // and works on
				store.down.Store(false)
				return []byte("the zombie's"), nil
			})
		wg.Wait()
		var unrecorded *idempotency.UnrecordedError
		if !errors.As(err, &unrecorded) || !errors.Is(err, idempotency.ErrLeaseLost) ||
			string(unrecorded.Response) != "the zombie's" {
			t.Errorf("the zombie got %v", err)
		}
		result, err := owner.Execute(t.Context(), key, request, never(t))
		wantResponse(t, result, err, "the successor's", true)
	})
}

func TestAnErrorOfAZombieTellsThatTheLeaseWasLost(t *testing.T) {
	inner := memory.New()
	_, err := newExecutor(t, inner, idempotency.Options{}).Execute(t.Context(), key, request,
		func(context.Context) ([]byte, error) {
			record, err := inner.Get(t.Context(), key)
			next := record
			next.Owner = idempotency.Owner{9}
			_, done, swapErr := inner.Swap(t.Context(), key, record.Version, next, time.Hour)
			if err != nil || !done || swapErr != nil {
				t.Error(err, done, swapErr)
			}
			return nil, errDown
		})
	if !errors.Is(err, errDown) || !errors.Is(err, idempotency.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// A caller who goes away cancels its function, and what comes of it is recorded all the same.
func TestTheOutcomeIsRecordedForACallerWhoIsGone(t *testing.T) {
	e := newExecutor(t, memory.New(), idempotency.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	result, err := e.Execute(ctx, key, request, func(ctx context.Context) ([]byte, error) {
		cancel()
		<-ctx.Done()
		return []byte("receipt"), nil
	})
	wantResponse(t, result, err, "receipt", false)
	result, err = e.Execute(t.Context(), key, request, never(t))
	wantResponse(t, result, err, "receipt", true)
}

func TestShortOutagesOfTheStoreAreNotSeen(t *testing.T) {
	for name, cut := range map[string]func(*outage) *atomic.Bool{
		"nothing arrives":    func(o *outage) *atomic.Bool { return &o.down },
		"nothing comes back": func(o *outage) *atomic.Bool { return &o.unanswered },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &outage{Store: memory.New()}
				e := newExecutor(t, store, idempotency.Options{})
				outage := func() {
					cut(store).Store(true)
					time.AfterFunc(5*time.Second, func() { cut(store).Store(false) })
				}
				begin := time.Now()
				outage() // while the key is claimed
				result, err := e.Execute(t.Context(), key, request,
					func(ctx context.Context) ([]byte, error) {
						if waited := time.Since(begin); waited > 10*time.Second {
							t.Errorf("the function began %v after the outage did", waited)
						}
						time.Sleep(lease/3 - time.Second)
						outage() // while the lease is renewed
						time.Sleep(lease)
						outage() // while the outcome is recorded
						return []byte("receipt"), ctx.Err()
					})
				wantResponse(t, result, err, "receipt", false)
				result, err = e.Execute(t.Context(), key, request, never(t))
				wantResponse(t, result, err, "receipt", true)
			})
		})
	}
}

// The owner does not know of its last renewal, and must neither take that for the record of its
// response nor for somebody else's.
func TestAResponseIsRecordedAfterARenewalThatWasNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: memory.New()}
		e := newExecutor(t, store, idempotency.Options{})
		result, err := e.Execute(t.Context(), key, request,
			func(ctx context.Context) ([]byte, error) {
				store.unanswered.Store(true)
				time.Sleep(lease/3 + time.Second) // a renewal is under way
				store.unanswered.Store(false)
				return []byte("receipt"), ctx.Err()
			})
		wantResponse(t, result, err, "receipt", false)
		result, err = newExecutor(t, store, idempotency.Options{}).Execute(t.Context(), key,
			request, never(t))
		wantResponse(t, result, err, "receipt", true)
	})
}

func TestALeaseOutlivesTheCallerAndAShorterTTL(t *testing.T) {
	for name, options := range map[string]idempotency.Options{
		"the caller": {},
		"a ttl":      {NamespaceTTL: func(string) time.Duration { return time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				other := newExecutor(t, store, idempotency.Options{Wait: idempotency.NoWait})
				ctx, cancel := context.WithCancel(t.Context())
				result, err := newExecutor(t, store, options).Execute(ctx, key, request,
					func(context.Context) ([]byte, error) {
						cancel()
						for range 20 {
							time.Sleep(lease / 4)
							if _, err := other.Execute(
								t.Context(), key, request, never(t),
							); !errors.Is(err, idempotency.ErrInProgress) {
								t.Errorf("another caller got %v", err)
							}
						}
						return []byte("receipt"), nil
					})
				wantResponse(t, result, err, "receipt", false)
			})
		})
	}
}

func TestAResponseThatCannotBeRecordedReachesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: memory.New()}
		e := newExecutor(t, store, idempotency.Options{StoreTimeout: 7 * time.Second})
		begin := time.Now()
		_, err := e.Execute(t.Context(), key, request, func(context.Context) ([]byte, error) {
			store.down.Store(true)
			return []byte("receipt"), nil
		})
		var unrecorded *idempotency.UnrecordedError
		if !errors.As(err, &unrecorded) || !errors.Is(err, errDown) ||
			string(unrecorded.Response) != "receipt" || unrecorded.Token == 0 {
			t.Errorf("got %v", err)
		}
		if insisted := time.Since(begin); insisted != 7*time.Second {
			t.Errorf("insisted for %v", insisted)
		}
		if _, err := e.Execute(t.Context(), key, request, never(t)); !errors.Is(err, errDown) {
			t.Errorf("a later caller without a store got %v", err)
		}
		store.down.Store(false)
		result, err := e.Execute(t.Context(), key, request, answers("another receipt"))
		wantResponse(t, result, err, "another receipt", false)
	})
}

// A claim whose answer comes after its lease is over must not be believed.
func TestALateClaimIsRenewedBeforeTheFunctionRuns(t *testing.T) {
	for _, row := range []struct {
		name     string
		takeover bool
		want     string
	}{
		{"the key is still its own", false, "the late one's"},
		{"the key was taken over", true, "the successor's"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				store := &outage{Store: inner}
				late := newExecutor(t, store, idempotency.Options{Lease: time.Second})
				store.unanswered.Store(true)
				var wg sync.WaitGroup
				wg.Go(func() {
					result, err := late.Execute(t.Context(), key, request,
						func(ctx context.Context) ([]byte, error) {
							record, err := inner.Get(ctx, key)
							if record.Revision < 2 || row.takeover {
								t.Errorf("the function runs under %+v, %v", record, err)
							}
							return []byte("the late one's"), nil
						})
					wantResponse(t, result, err, row.want, row.takeover)
				})
				synctest.Wait()
				if row.takeover {
					result, err := newExecutor(t, inner, idempotency.Options{}).Execute(t.Context(),
						key, request, answers("the successor's"))
					wantResponse(t, result, err, "the successor's", false)
				}
				time.Sleep(2 * time.Second)
				store.unanswered.Store(false)
				wg.Wait()
			})
		})
	}
}
