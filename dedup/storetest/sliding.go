package storetest

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

var slidingBehaviours = []behaviour{
	{"copies keep a claim beyond its ttl", copiesRenew},
	{"a claim ends a ttl after its last copy", endsAfterTheLastCopy},
	{"the owner renews nothing", ownerRenewsNothing},
	{"a copy that shares the owner's claim renews it", sharedClaimRenews},
	{"a copy renews nothing in another scope", otherScopeRenewsNothing},
	{"a copy does not renew a young claim", youngClaimStays},
	{"a renewal changes only the end", renewalChangesTheEnd},
	{"a renewal moves no end forward", renewalNeverShortens},
	{"a renewal does not bring back a released claim", releasedStaysFree},
	{"a renewal that was applied but reported failed is repeated", ambiguousRenewal},
	{"renewals stand after a reopen", durableRenewal},
	{"large mixed batches are renewed", renewedBatch},
	{"random claims end when they must", randomWindows},
	{"copies that come at once renew one claim", renewAtOnce},
}

// newSlidingScope has a ttl that leaves time for stores that count in seconds.
func (s *subject) newSlidingScope() dedup.Scope {
	scope := newScope()
	scope.Sliding = true
	scope.TTL = 2*time.Second + s.features.ExpiryGranularity.Truncate(time.Second)
	return scope
}

// wait is a pause of a test of time.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	if !pause.For(t.Context(), d) {
		t.Fatal(t.Context().Err())
	}
}

func copiesRenew(t *testing.T, s *subject) {
	w := s.window(s.newSlidingScope())
	first := s.claimIn(t, w, claimOf("order-1", 1))
	for n := 2; time.Now().Before(first.ClaimedAt.Add(5 * w.scope.TTL / 2)); n++ {
		got := s.claimIn(t, w, claimOf("order-1", n))
		if got.Outcome == dedup.Exists {
			wantSameTime(t, got, first)
		} else {
			first = got // the machine stood still for a ttl
		}
		wait(t, w.scope.TTL/20)
	}
}

func endsAfterTheLastCopy(t *testing.T, s *subject) {
	w := s.window(s.newSlidingScope())
	s.claimIn(t, w, claimOf("order-1", 1))
	wait(t, w.scope.TTL/2)
	s.claimIn(t, w, claimOf("order-1", 2))
	wait(t, w.scope.TTL/2)
	if began := time.Now(); began.Before(w.from.Add(-w.scope.TTL / 8)) {
		wantExists(t, s.lookup(t, w.scope, "order-1"), w.claim)
	}
	eventually(t, w.scope.TTL+s.features.ExpiryGranularity+patience, "the claim ends", func() bool {
		began := time.Now()
		free := s.lookup(t, w.scope, "order-1").Outcome == dedup.Undecided
		switch {
		case free && time.Now().Before(w.from):
			t.Errorf("the claim ended %v too early", time.Until(w.from))
		case !free && began.After(w.until):
			t.Errorf("the claim stands %v too long", began.Sub(w.until))
		}
		return free
	})
	s.claimIn(t, w, claimOf("order-1", 3))
}

func ownerRenewsNothing(t *testing.T, s *subject) {
	w := s.window(s.newSlidingScope())
	c := claimOf("order-1", 1)
	s.claimIn(t, w, c)
	for w.ends == 0 {
		s.claimIn(t, w, c)
		wait(t, w.scope.TTL/20)
	}
}

func sharedClaimRenews(t *testing.T, s *subject) {
	w := s.window(s.newSlidingScope())
	c := claimOf("order-1", 1)
	first := s.claimIn(t, w, c)
	c.Copied = true
	for time.Now().Before(first.ClaimedAt.Add(3 * w.scope.TTL / 2)) {
		s.claimIn(t, w, c)
		wait(t, w.scope.TTL/20)
	}
}

func otherScopeRenewsNothing(t *testing.T, s *subject) {
	scope := s.newSlidingScope()
	scope.Sliding = false
	w := s.window(scope)
	s.claimIn(t, w, claimOf("order-1", 1))
	for n := 2; w.ends == 0; n++ {
		c := claimOf("order-1", n)
		c.Copied = true
		s.claimIn(t, w, c)
		wait(t, w.scope.TTL/20)
	}
}

// releasedStaysFree races copies with releases: whoever finds the ID free owns it.
func releasedStaysFree(t *testing.T, s *subject) {
	scope := s.newSlidingScope()
	scope.TTL = time.Minute
	longer := scope
	longer.TTL = time.Hour // so that each copy has something to renew
	c := claimOf("order-1", 1)
	for n := 2; n < 12; n++ {
		s.claim(t, scope, c)
		copied := claimOf("order-1", n)
		answered := make(chan dedup.Answer, 1)
		go func() {
			answers, _, err := s.insist(t.Context(), longer, []dedup.Claim{copied})
			if err != nil {
				answers = make([]dedup.Answer, 1)
			}
			answered <- answers[0]
		}()
		s.release(t, scope, c.ID)
		got := <-answered
		held := s.lookup(t, scope, c.ID)
		switch {
		case got.Outcome == dedup.Undecided:
			t.Fatal("the copy is undecided")
		case got.Owner == copied.Owner:
			wantExists(t, held, copied)
		default:
			wantExists(t, got, c)
			if held != (dedup.Answer{}) {
				t.Fatalf("the released ID has the owner %+v, and the copy was told %+v", held, got)
			}
		}
		s.release(t, scope, c.ID)
		s.wantFree(t, scope, c.ID)
	}
}
