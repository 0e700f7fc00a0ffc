package claimmetrics

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kdedup/kdedup/dedup"
)

// answering is a store whose calls end as they are told.
type answering struct {
	dedup.Store
	outcome dedup.Outcome
	err     error
	during  func()
}

func (s answering) Claim(
	_ context.Context, _ dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	if s.during != nil {
		s.during()
	}
	answers := make([]dedup.Answer, len(claims))
	answers[0].Outcome = s.outcome
	return answers, s.err
}

func (s answering) Lookup(context.Context, dedup.Scope, dedup.ID) (dedup.Answer, error) {
	return dedup.Answer{Outcome: s.outcome}, s.err
}

func TestTheStoreIsUpAsItsLastCallSays(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	down := errors.New("no node")
	for _, c := range []struct {
		name         string
		ctx          context.Context
		store        answering
		claim, ready float64 // up after a claim, after a lookup
	}{
		{"all is decided", t.Context(), answering{outcome: dedup.Applied}, 1, 1},
		{"some claims are open", t.Context(), answering{outcome: dedup.Exists, err: down}, 1, 0},
		{"nothing is decided", t.Context(), answering{err: down}, 0, 0},
		{"the caller gave up", canceled, answering{err: context.Canceled}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			families := NewCollectors(prometheus.NewRegistry())
			store := families.Observed(c.store)
			_, _ = store.Claim(c.ctx, dedup.Scope{}, make([]dedup.Claim, 2))
			if got := testutil.ToFloat64(families.store.up); got != c.claim {
				t.Errorf("after a claim: %v, want %v", got, c.claim)
			}
			_, _ = store.Lookup(c.ctx, dedup.Scope{}, "id")
			if got := testutil.ToFloat64(families.store.up); got != c.ready {
				t.Errorf("after a lookup: %v, want %v", got, c.ready)
			}
		})
	}
}

func TestClaimsAreInFlightDuringTheirCall(t *testing.T) {
	families := NewCollectors(prometheus.NewRegistry())
	inFlight := func() float64 { return testutil.ToFloat64(families.store.inFlight) }
	var during float64
	store := families.Observed(answering{
		outcome: dedup.Applied, during: func() { during = inFlight() },
	})
	if _, err := store.Claim(t.Context(), dedup.Scope{}, make([]dedup.Claim, 7)); err != nil {
		t.Fatal(err)
	}
	if during != 7 || inFlight() != 0 {
		t.Errorf("in flight: %v during the call and %v after it, want 7 and 0", during, inFlight())
	}
}

// A server that is full, or may only be read, answers look-ups and decides no claims.
func TestAStoreThatDecidesNoClaimsIsNotUpBecauseItAnswersLookUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		families := NewCollectors(prometheus.NewRegistry())
		full, lane := errors.New("the server is full"), families.For("orders", "0")
		store := families.Observed(&claimless{err: full})
		ask := func(claim bool, up float64, want error) {
			t.Helper()
			if claim {
				_, _ = store.Claim(t.Context(), dedup.Scope{}, make([]dedup.Claim, 1))
			}
			_, _ = store.Lookup(t.Context(), dedup.Scope{}, "id")
			if got := testutil.ToFloat64(families.store.up); got != up {
				t.Errorf("up is %v, want %v", got, up)
			}
			if got := families.Refusal(); !errors.Is(got, want) || (got == nil) != (want == nil) {
				t.Errorf("refused: %v, want %v", got, want)
			}
		}
		ask(false, 1, nil) // nobody claims
		ask(true, 1, nil)  // for a moment
		lane.Undecided(1)
		time.Sleep(settled)
		ask(true, 0, full)
		lane.Undecided(1) // still the same wait
		ask(false, 0, full)
		lane.Ended() // the partitions have moved: nobody waits
		ask(false, 1, nil)
		lane.Undecided(1)
		ask(true, 0, full)
		dedup.Unwrapped(store).(*claimless).err = nil
		ask(true, 1, nil)
	})
}

// claimless answers look-ups, and claims as it is told.
type claimless struct {
	dedup.Store
	err error
}

func (s *claimless) Claim(
	_ context.Context, _ dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	return make([]dedup.Answer, len(claims)), s.err
}

func (*claimless) Lookup(context.Context, dedup.Scope, dedup.ID) (dedup.Answer, error) {
	return dedup.Answer{}, nil
}
