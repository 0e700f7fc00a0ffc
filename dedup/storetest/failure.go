package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var failureBehaviours = []behaviour{
	{"a cancelled context leaves claims undecided", cancelledBefore},
	{"a context that ends in the middle loses nothing", cancelledDuring},
	{"a claim that was applied but reported failed is recognised", ambiguous},
	{"claims stand after a reopen", durable},
}

func cancelledBefore(t *testing.T, s *subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	scope, claims := newScope(), claimsOf(100, 0)
	start := time.Now()
	answers, err := s.Claim(ctx, scope, claims)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Claim with a cancelled context took %v", took)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Claim with a cancelled context: %v, want an error that wraps context.Canceled",
			err)
	}
	wantUndecided(t, answers, len(claims))
	for i, a := range s.claim(t, scope, claims...) {
		wantOwner(t, a, claims[i])
	}
}

func wantUndecided(t *testing.T, answers []dedup.Answer, count int) {
	t.Helper()
	if len(answers) != count {
		t.Fatalf("%d answers to %d claims", len(answers), count)
	}
	for i, a := range answers {
		if a != (dedup.Answer{}) {
			t.Fatalf("answer %d = %+v, want undecided", i, a)
		}
	}
}

// cancelledDuring ends the context after longer and longer delays, so that some calls are caught
// before, some in and some after their work. The claims are the caller's again once the call
// returned.
func cancelledDuring(t *testing.T, s *subject) {
	for delay := 50 * time.Microsecond; delay < 200*time.Millisecond; delay *= 2 {
		scope, claims := newScope(), claimsOf(2000, 0)
		s.register(t, scope) // Claim would, and take the time
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		given := slices.Clone(claims)
		answers, err := s.Claim(ctx, scope, given)
		clear(given) // the race detector tells if the store still reads them
		cancel()
		undecided := wantNobodyElse(t, answers, claims)
		if (undecided > 0) != (err != nil) {
			t.Fatalf("after %v: %d claims undecided and error %v", delay, undecided, err)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %v: %v, want an error that wraps context.DeadlineExceeded", delay, err)
		}
		again, _, err := s.insist(t.Context(), scope, claims)
		if err != nil {
			t.Fatal(err)
		}
		wantNobodyElse(t, again, claims)
	}
}

// wantNobodyElse checks that no answer names another owner and counts those that name none.
func wantNobodyElse(t *testing.T, answers []dedup.Answer, claims []dedup.Claim) (undecided int) {
	t.Helper()
	if len(answers) != len(claims) {
		t.Fatalf("%d answers to %d claims", len(answers), len(claims))
	}
	for i, a := range answers {
		if a.Outcome == dedup.Undecided {
			undecided++
			continue
		}
		wantOwner(t, a, claims[i])
	}
	return undecided
}

func ambiguous(t *testing.T, s *subject) {
	if s.features.Ambiguous == nil {
		t.Skip("the store has no way to report an applied claim as failed")
	}
	scope, claims := newScope(), claimsOf(10, 0)
	s.register(t, scope) // Claim would, and that would be what goes wrong
	s.features.Ambiguous(t, s.Store)
	answers, err := s.Claim(t.Context(), scope, claims)
	if err == nil {
		t.Fatal("Claim reported no error")
	}
	wantUndecided(t, answers, len(claims))
	for i, a := range s.claim(t, scope, claims...) {
		wantExists(t, a, claims[i])
	}
}

func durable(t *testing.T, s *subject) {
	if s.features.Reopen == nil {
		t.Skip("the store cannot be reopened")
	}
	scope, claims := newScope(), claimsOf(1000, 0)
	s.register(t, scope)
	applied, _, err := s.insist(t.Context(), scope, claims)
	if err != nil {
		t.Fatal(err)
	}
	s.release(t, scope, claims[7].ID)

	reopened := &subject{Store: s.features.Reopen(t, s.Store), features: s.features,
		began: s.began}

	reopened.wantFree(t, scope, claims[7].ID)
	for i, c := range claims {
		if i != 7 {
			got := reopened.lookup(t, scope, c.ID)
			wantExists(t, got, c)
			wantSameTime(t, got, applied[i])
		}
	}
	other := scope
	other.Buckets++
	if err := reopened.Register(t.Context(), other); !errors.Is(err, dedup.ErrScopeMismatch) {
		t.Errorf("Register with other buckets after a reopen: %v, want ErrScopeMismatch", err)
	}
}
