package storetest

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// end is when a claim ends, for stores that can tell.
func (s *subject) end(t *testing.T, scope dedup.Scope, id dedup.ID) time.Time {
	t.Helper()
	found := s.find(t, scope, id)
	if len(found) != 1 {
		t.Fatalf("Find(%.40q) = %+v, want one claim", id, found)
	}
	return found[0].Ends
}

func (s *subject) find(t *testing.T, scope dedup.Scope, ids ...dedup.ID) []dedup.Standing {
	t.Helper()
	store, can := s.Store.(dedup.Exporter)
	if !can {
		t.Skip("the store cannot tell when claims end")
	}
	found, err := store.Find(t.Context(), scope, ids)
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return found
}

// endWithin is how far two looks at one end may be apart.
func (s *subject) endWithin() time.Duration {
	return 2*s.features.ExpiryGranularity + time.Second
}

func youngClaimStays(t *testing.T, s *subject) {
	scope := s.newSlidingScope()
	scope.TTL = time.Hour
	s.claim(t, scope, claimOf("order-1", 1))
	before := s.end(t, scope, "order-1")
	wait(t, s.endWithin())
	s.claim(t, scope, claimOf("order-1", 2))
	after := s.end(t, scope, "order-1")
	if moved := after.Sub(before); moved.Abs() > s.endWithin()/2 {
		t.Errorf("the end moved by %v, though the claim is %v old and its ttl is %v", moved,
			s.endWithin(), scope.TTL)
	}
}

func renewalChangesTheEnd(t *testing.T, s *subject) {
	scope := s.newSlidingScope()
	scope.TTL = time.Minute
	c := claimOf("order-1", 1)
	first := s.claim(t, scope, c)[0]
	scope.TTL = time.Hour
	wantExists(t, s.claim(t, scope, claimOf("order-1", 2))[0], c)
	found := s.find(t, scope, "order-1")
	if len(found) != 1 {
		t.Fatalf("Find = %+v, want one claim", found)
	}
	wantExists(t, found[0].Answer(), c)
	wantSameTime(t, found[0].Answer(), first)
	if left := time.Until(found[0].Ends); left < time.Hour-patience-s.endWithin() ||
		left > time.Hour+s.endWithin() {
		t.Errorf("the claim ends in %v, want an hour", left)
	}
	wantExists(t, s.lookup(t, scope, "order-1"), c)
}

// renewalNeverShortens claims with a ttl that was made shorter since.
func renewalNeverShortens(t *testing.T, s *subject) {
	scope := s.newSlidingScope()
	scope.TTL = time.Hour
	c := claimOf("order-1", 1)
	s.claim(t, scope, c)
	scope.TTL = time.Minute
	wantExists(t, s.claim(t, scope, claimOf("order-1", 2))[0], c)
	end := s.end(t, scope, "order-1")
	if left := time.Until(end); left < time.Hour-patience-s.endWithin() {
		t.Errorf("the claim ends in %v, want an hour", left)
	}
}

func ambiguousRenewal(t *testing.T, s *subject) {
	if s.features.Ambiguous == nil {
		t.Skip("the store has no way to report an applied claim as failed")
	}
	scope, c := s.newSlidingScope(), claimOf("order-1", 1)
	scope.TTL = time.Minute
	s.claim(t, scope, c)
	scope.TTL = time.Hour
	s.features.Ambiguous(t, s.Store)
	answers, err := s.Claim(t.Context(), scope, []dedup.Claim{claimOf("order-1", 2)})
	if err == nil {
		t.Fatal("Claim reported no error")
	}
	wantUndecided(t, answers, 1)
	wantExists(t, s.claim(t, scope, claimOf("order-1", 2))[0], c)
	if left := time.Until(s.end(t, scope, c.ID)); left < time.Hour-patience-s.endWithin() {
		t.Errorf("the claim ends in %v, want an hour", left)
	}
}

func durableRenewal(t *testing.T, s *subject) {
	if s.features.Reopen == nil {
		t.Skip("the store cannot be reopened")
	}
	scope, claims := s.newSlidingScope(), claimsOf(200, 0)
	scope.TTL = 5 * time.Second
	began := time.Now()
	if _, _, err := s.insist(t.Context(), scope, claims); err != nil {
		t.Fatal(err)
	}
	longer := scope
	longer.TTL = time.Hour
	copies := claimsOf(len(claims), 1000)
	if _, _, err := s.insist(t.Context(), longer, copies[1:]); err != nil {
		t.Fatal(err)
	}
	reopened := &subject{Store: s.features.Reopen(t, s.Store), features: s.features,
		began: s.began}
	wait(t, time.Until(began.Add(scope.TTL+s.features.ExpiryGranularity)))
	eventually(t, patience, "the claim ends that nobody has renewed", func() bool {
		return reopened.lookup(t, scope, claims[0].ID) == dedup.Answer{}
	})
	for i, c := range claims[1:] {
		wantExists(t, reopened.lookup(t, scope, c.ID), claims[1+i])
	}
}

// renewedBatch has new IDs, owners that come again, and copies of young and of old claims.
func renewedBatch(t *testing.T, s *subject) {
	const count = 1200
	scope, claims := s.newSlidingScope(), claimsOf(count, 0)
	scope.TTL = time.Minute
	old := claims[:count/2]
	if _, _, err := s.insist(t.Context(), scope, old); err != nil {
		t.Fatal(err)
	}
	longer := scope
	longer.TTL = time.Hour
	young := claims[count/2 : 3*count/4]
	if _, _, err := s.insist(t.Context(), longer, young); err != nil {
		t.Fatal(err)
	}
	asked := claimsOf(count, 5000)
	for i := 0; i < count; i += 3 {
		asked[i] = claims[i]
	}
	answers, _, err := s.insist(t.Context(), longer, asked)
	if err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		if i < 3*count/4 {
			wantExists(t, answers[i], claims[i])
		} else {
			wantOwner(t, answers[i], asked[i])
		}
	}
	var ids []dedup.ID
	for _, c := range claims[:900] {
		ids = append(ids, c.ID)
	}
	for _, f := range s.find(t, scope, ids...) {
		at := int(f.Owner.Offset)
		renewed := at >= count/2 || at%3 != 0
		if long := time.Until(f.Ends) > 10*time.Minute; long != renewed {
			t.Fatalf("claim %d ends %v, renewed should be %t", at, f.Ends, renewed)
		}
	}
}

// renewAtOnce has several claimants renew one claim together.
func renewAtOnce(t *testing.T, s *subject) {
	const claimants = 8
	scope, c := s.newSlidingScope(), claimOf("order-1", 1)
	scope.TTL = time.Minute
	s.claim(t, scope, c)
	scope.TTL = time.Hour
	type outcome struct {
		answer dedup.Answer
		err    error
	}
	all := make(chan outcome, claimants)
	for i := range claimants {
		go func() {
			answers, _, err := s.insist(t.Context(), scope,
				[]dedup.Claim{claimOf("order-1", 2+i)})
			if err != nil {
				answers = make([]dedup.Answer, 1)
			}
			all <- outcome{answers[0], err}
		}()
	}
	for range claimants {
		got := <-all
		if got.err != nil {
			t.Fatal(got.err)
		}
		wantExists(t, got.answer, c)
	}
	if left := time.Until(s.end(t, scope, c.ID)); left < time.Hour-patience-s.endWithin() {
		t.Errorf("the claim ends in %v, want an hour", left)
	}
}
