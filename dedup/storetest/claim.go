package storetest

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/kdedup/kdedup/dedup"
)

var claimBehaviours = []behaviour{
	{"a first claim is applied", firstClaim},
	{"a claim is repeated by its owner", repeatedClaim},
	{"a claim is later than the time that it must come after", claimAfter},
	{"another claimant is told the owner", otherClaimant},
	{"coordinates come back exactly", coordinates},
	{"answers are in the order of a large mixed batch", mixedBatch},
	{"many ids share one bucket", oneBucket},
	{"no claims need no answers", noClaims},
	{"claims are not kept by the store", claimsNotKept},
}

func firstClaim(t *testing.T, s *subject) {
	c := claimOf("order-1", 1)
	before := time.Now().Truncate(time.Millisecond)
	got := s.claim(t, newScope(), c)[0]
	s.wantApplied(t, got, c)
	if got.ClaimedAt.Before(before) || got.ClaimedAt.After(time.Now()) {
		t.Errorf("ClaimedAt %v is outside of the call", got.ClaimedAt)
	}
	if got.ClaimedAt.Nanosecond()%int(time.Millisecond) != 0 {
		t.Errorf("ClaimedAt %v is not in whole milliseconds", got.ClaimedAt)
	}
}

func repeatedClaim(t *testing.T, s *subject) {
	scope, c := newScope(), claimOf("order-1", 1)
	first := s.claim(t, scope, c)[0]
	for range 3 {
		again := s.claim(t, scope, c)[0]
		wantExists(t, again, c)
		wantSameTime(t, again, first)
	}
}

// claimAfter has a claimant whose clock is five minutes behind the one that made the settled
// claims.
func claimAfter(t *testing.T, s *subject) {
	scope, c, plain := newScope(), claimOf("order-1", 1), claimOf("order-2", 2)
	c.After = time.Now().Add(5 * time.Minute).Truncate(time.Millisecond)
	answers := s.claim(t, scope, plain, c)
	s.wantApplied(t, answers[1], c)
	if got := answers[1].ClaimedAt; !got.After(c.After) || got.After(c.After.Add(time.Second)) {
		t.Errorf("ClaimedAt = %v, want the first time after %v", got, c.After)
	}
	c.After = time.Time{}
	for i, claim := range []dedup.Claim{plain, c} {
		found := s.lookup(t, scope, claim.ID)
		wantExists(t, found, claim)
		wantSameTime(t, found, answers[i])
	}
}

func otherClaimant(t *testing.T, s *subject) {
	scope, c := newScope(), claimOf("order-1", 1)
	first := s.claim(t, scope, c)[0]
	for n := 2; n < 5; n++ {
		got := s.claim(t, scope, claimOf("order-1", n))[0]
		wantExists(t, got, c)
		wantSameTime(t, got, first)
	}
}

func wantSameTime(t *testing.T, got, want dedup.Answer) {
	t.Helper()
	if !got.ClaimedAt.Equal(want.ClaimedAt) {
		t.Fatalf("ClaimedAt = %v, want that of the owning claim, %v", got.ClaimedAt, want.ClaimedAt)
	}
}

func coordinates(t *testing.T, s *subject) {
	var full, ascending [16]byte
	for i := range full {
		full[i], ascending[i] = 0xff, byte(i)
	}
	for _, row := range []struct {
		name  string
		owner dedup.Coordinates
	}{
		{"the first record", dedup.Coordinates{TopicID: ascending}},
		{"no leader epoch", dedup.Coordinates{TopicID: ascending, LeaderEpoch: -1}},
		{"a huge offset", dedup.Coordinates{TopicID: ascending, Offset: 1 << 62}},
		{"everything at its maximum", dedup.Coordinates{
			TopicID: full, Partition: math.MaxInt32, Offset: math.MaxInt64,
			LeaderEpoch: math.MaxInt32,
		}},
		{"everything zero", dedup.Coordinates{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			scope := newScope()
			c := dedup.Claim{ID: "id", Owner: row.owner, Fingerprint: dedup.Fingerprint(full)}
			s.wantApplied(t, s.claim(t, scope, c)[0], c)
			wantExists(t, s.claim(t, scope, claimOf("id", 2))[0], c)
			wantExists(t, s.lookup(t, scope, "id"), c)
		})
	}
}

// mixedBatch claims every third ID beforehand, so that answers of both kinds alternate.
func mixedBatch(t *testing.T, s *subject) {
	const count, step, other = 10_000, 3, 1_000_000
	scope, claims := newScope(), claimsOf(count, 0)
	var existing []dedup.Claim
	for i := 0; i < count; i += step {
		existing = append(existing, claimOf(string(claims[i].ID), other+i))
	}
	if _, _, err := s.insist(t.Context(), scope, existing); err != nil {
		t.Fatal(err)
	}
	answers, repeated, err := s.insist(t.Context(), scope, claims)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range claims {
		switch {
		case i%step == 0:
			wantExists(t, answers[i], existing[i/step])
		case repeated:
			wantOwner(t, answers[i], c)
		default:
			s.wantApplied(t, answers[i], c)
		}
	}
}

// wantOwner checks that the claimant owns the ID, through whichever of its calls.
func wantOwner(t *testing.T, got dedup.Answer, c dedup.Claim) {
	t.Helper()
	if got.Outcome == dedup.Undecided || got.Owner != c.Owner || got.Fingerprint != c.Fingerprint {
		t.Fatalf("answer %+v, want that %+v owns its id", got, c)
	}
}

func oneBucket(t *testing.T, s *subject) {
	scope, claims := newScope(), claimsOf(500, 0)
	scope.Buckets = 1
	answers, _, err := s.insist(t.Context(), scope, claims)
	if err != nil {
		t.Fatal(err)
	}
	for i := range claims {
		wantOwner(t, answers[i], claims[i])
	}
	for i, a := range s.claim(t, scope, claims...) {
		wantExists(t, a, claims[i])
	}
}

func noClaims(t *testing.T, s *subject) {
	answers, err := s.Claim(t.Context(), newScope(), nil)
	if len(answers) != 0 || err != nil {
		t.Fatalf("Claim without claims = %v, %v", answers, err)
	}
}

// claimsNotKept overwrites the claims after the call, and even the memory of the IDs: a record's
// memory is reused when the batch is done.
func claimsNotKept(t *testing.T, s *subject) {
	scope := newScope()
	memory := []byte("id-1id-2")
	claims := []dedup.Claim{claimOf("", 1), claimOf("", 2)}
	for i := range claims {
		claims[i].ID = dedup.ID(unsafe.String(&memory[i*4], 4))
	}
	s.claim(t, scope, claims...)

	copy(memory, "xxxxxxxx")
	clear(claims)

	wantExists(t, s.lookup(t, scope, "id-1"), claimOf("id-1", 1))
	wantExists(t, s.lookup(t, scope, "id-2"), claimOf("id-2", 2))
	s.wantFree(t, scope, "xxxx")
}
