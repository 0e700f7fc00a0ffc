package claimmetrics

import (
	"context"
	"errors"
	"testing"

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
