package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
)

// patience is how long the suite waits for what must happen soon on a healthy store.
const patience = 30 * time.Second

// subject is the store under test.
type subject struct {
	dedup.Store
	features   Features
	began      time.Time
	registered sync.Map // consumer group and name of a scope -> *sync.Once
}

// Claim registers the scope first, if no call before has done that.
func (s *subject) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	var err error
	s.once(scope).Do(func() { err = s.Register(context.WithoutCancel(ctx), scope) })
	if err != nil {
		return make([]dedup.Answer, len(claims)), err
	}
	return s.Store.Claim(ctx, scope, claims)
}

func (s *subject) once(scope dedup.Scope) *sync.Once {
	once, _ := s.registered.LoadOrStore([2]string{scope.ConsumerGroup, scope.Name}, new(sync.Once))
	return once.(*sync.Once)
}

// newScope returns a scope that nobody has used.
func newScope() dedup.Scope {
	return dedup.Scope{
		ConsumerGroup: "group-" + rand.Text(), Name: "topic-" + rand.Text(),
		TTL: time.Hour, Buckets: 16, Extractor: "header:message-id",
	}
}

// owner returns the coordinates of record n; different numbers give different records.
func owner(n int) dedup.Coordinates {
	return dedup.Coordinates{TopicID: [16]byte{0xfe, 1: 0, 15: 7}, Partition: int32(n % 8),
		Offset: int64(n), LeaderEpoch: 3}
}

// claimOf is the claim of record n for an ID, with a fingerprint that tells n.
func claimOf(id string, n int) dedup.Claim {
	return dedup.Claim{ID: dedup.ID(id), Owner: owner(n),
		Fingerprint: dedup.Fingerprint{0: 0xff, 14: byte(n >> 8), 15: byte(n)}}
}

// claimsOf are the claims for the IDs 0 … count-1, by the records first, first+1, ….
func claimsOf(count, first int) []dedup.Claim {
	claims := make([]dedup.Claim, count)
	for i := range claims {
		claims[i] = claimOf(fmt.Sprintf("id-%06d", i), first+i)
	}
	return claims
}

// claim expects that every claim is decided at once.
func (s *subject) claim(t *testing.T, scope dedup.Scope, claims ...dedup.Claim) []dedup.Answer {
	t.Helper()
	answers, err := s.Claim(t.Context(), scope, claims)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	if len(answers) != len(claims) {
		t.Fatalf("Claim returned %d answers to %d claims", len(answers), len(claims))
	}
	for i, a := range answers {
		if a.Outcome == dedup.Undecided {
			t.Fatalf("claim %d of %d is undecided without an error", i, len(claims))
		}
	}
	return answers
}

// insist repeats undecided claims as a caller does, for tests that load the store enough to time
// out. It reports whether that happened, and is for goroutines: it returns errors.
func (s *subject) insist(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) (answers []dedup.Answer, repeated bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers = make([]dedup.Answer, len(claims))
	open := make([]int, len(claims))
	for i := range open {
		open[i] = i
	}
	for {
		batch := make([]dedup.Claim, len(open))
		for i, at := range open {
			batch[i] = claims[at]
		}
		got, claimErr := s.Claim(ctx, scope, batch)
		if len(got) != len(batch) {
			return nil, repeated, fmt.Errorf("%d answers to %d claims, error %w", len(got),
				len(batch), claimErr)
		}
		left := open[:0]
		for i, at := range open {
			if answers[at] = got[i]; got[i].Outcome == dedup.Undecided {
				left = append(left, at)
			}
		}
		if open = left; len(open) == 0 {
			return answers, repeated, nil
		}
		if repeated = true; ctx.Err() != nil {
			return nil, repeated, fmt.Errorf("%d claims undecided after %v: %w", len(open),
				patience, claimErr)
		}
	}
}

func (s *subject) lookup(t *testing.T, scope dedup.Scope, id dedup.ID) dedup.Answer {
	t.Helper()
	answer, err := s.Lookup(t.Context(), scope, id)
	if err != nil {
		t.Fatalf("Lookup(%.40q): %v", id, err)
	}
	return answer
}

func (s *subject) release(t *testing.T, scope dedup.Scope, id dedup.ID) {
	t.Helper()
	if err := s.Release(t.Context(), scope, id); err != nil {
		t.Fatalf("Release(%.40q): %v", id, err)
	}
}

// wantApplied checks that the claim was applied just now.
func (s *subject) wantApplied(t *testing.T, got dedup.Answer, c dedup.Claim) {
	t.Helper()
	want := dedup.Answer{Outcome: dedup.Applied, Owner: c.Owner, Fingerprint: c.Fingerprint}
	if s.features.Repeats && got.Outcome == dedup.Exists {
		want.Outcome = dedup.Exists
	}
	wantAnswer(t, got, want)
}

// wantExists checks that the ID is owned by the given claim.
func wantExists(t *testing.T, got dedup.Answer, c dedup.Claim) {
	t.Helper()
	want := dedup.Answer{Outcome: dedup.Exists, Owner: c.Owner, Fingerprint: c.Fingerprint}
	wantAnswer(t, got, want)
}

// wantAnswer compares all but the time; that it is recent is enough where two clocks are read.
func wantAnswer(t *testing.T, got, want dedup.Answer) {
	t.Helper()
	if age := time.Since(got.ClaimedAt); age > 10*time.Minute || age < -10*time.Minute {
		t.Fatalf("ClaimedAt is %v, not a time of this test", got.ClaimedAt)
	}
	got.ClaimedAt = time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("answer (-want +got):\n%s", diff)
	}
}

// wantFree checks that nobody owns the ID.
func (s *subject) wantFree(t *testing.T, scope dedup.Scope, id dedup.ID) {
	t.Helper()
	if got := s.lookup(t, scope, id); got != (dedup.Answer{}) {
		t.Fatalf("Lookup(%.40q) = %+v, want the zero answer: nobody owns it", id, got)
	}
}

// eventually polls until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", within, what)
		case <-tick.C:
		}
	}
}
