package storetest

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var lifetimeBehaviours = []behaviour{
	{"a claim ends with its ttl", claimExpires},
	{"each claim has the ttl it was made with", ttlOfTheClaim},
	{"an expired id is not found", expiredNotFound},
	{"lookup of an unknown id finds nothing", lookupUnknown},
	{"lookup in an unknown scope finds nothing", lookupUnknownScope},
	{"lookup finds a claim", lookupFinds},
	{"release makes an id free", releaseFrees},
	{"release may be repeated", releaseTwice},
	{"release touches no other id", releaseTouchesNoOther},
}

// briefly is the shortest TTL that the contract allows.
const briefly = time.Second

// expiry is how long a claim of a brief scope may stand.
func (s *subject) expiry() time.Duration {
	return briefly + s.features.ExpiryGranularity + patience
}

// claimExpires polls with the claim of another record, which must not prolong the first.
func claimExpires(t *testing.T, s *subject) {
	scope, c, other := newScope(), claimOf("order-1", 1), claimOf("order-1", 2)
	scope.TTL = briefly
	start := time.Now()
	first := s.claim(t, scope, c)[0]
	s.wantApplied(t, first, c)
	var got dedup.Answer
	eventually(t, s.expiry(), "the claim ends", func() bool {
		got = s.claim(t, scope, other)[0]
		return got.Outcome == dedup.Applied
	})
	s.wantApplied(t, got, other)
	if lived := time.Since(start); lived < briefly-s.features.ExpiryGranularity {
		t.Errorf("the claim ended after %v, its ttl is %v", lived, briefly)
	}
	wantLater(t, got, first)
}

func wantLater(t *testing.T, got, than dedup.Answer) {
	t.Helper()
	if !got.ClaimedAt.After(than.ClaimedAt) {
		t.Errorf("ClaimedAt = %v, want a time after %v", got.ClaimedAt, than.ClaimedAt)
	}
}

func ttlOfTheClaim(t *testing.T, s *subject) {
	long := newScope()
	brief := long
	brief.TTL = briefly
	keep, pass := claimOf("keep", 1), claimOf("pass", 2)
	s.claim(t, long, keep)
	s.claim(t, brief, pass)
	eventually(t, s.expiry(), "the brief claim ends", func() bool {
		return s.lookup(t, long, pass.ID).Outcome == dedup.Undecided
	})
	wantExists(t, s.claim(t, brief, claimOf("keep", 3))[0], keep)
}

func expiredNotFound(t *testing.T, s *subject) {
	scope, claims := newScope(), claimsOf(100, 0)
	scope.TTL = briefly
	s.claim(t, scope, claims...)
	eventually(t, s.expiry(), "all claims end", func() bool {
		for _, c := range claims {
			if s.lookup(t, scope, c.ID).Outcome != dedup.Undecided {
				return false
			}
		}
		return true
	})
	s.wantFree(t, scope, claims[0].ID)
}

func lookupUnknown(t *testing.T, s *subject) {
	scope := newScope()
	s.claim(t, scope, claimOf("order-1", 1))
	s.wantFree(t, scope, "order-2")
	s.wantFree(t, scope, "order-")
	s.wantFree(t, scope, "order-11")
}

func lookupUnknownScope(t *testing.T, s *subject) {
	s.wantFree(t, newScope(), "order-1")
	s.release(t, newScope(), "order-1")
}

func lookupFinds(t *testing.T, s *subject) {
	scope, c := newScope(), claimOf("order-1", 1)
	applied := s.claim(t, scope, c)[0]
	got := s.lookup(t, scope, c.ID)
	wantExists(t, got, c)
	wantSameTime(t, got, applied)
}

func releaseFrees(t *testing.T, s *subject) {
	scope, c, next := newScope(), claimOf("order-1", 1), claimOf("order-1", 2)
	s.claim(t, scope, c)
	s.release(t, scope, c.ID)
	s.wantFree(t, scope, c.ID)
	s.wantApplied(t, s.claim(t, scope, next)[0], next)
	wantExists(t, s.claim(t, scope, c)[0], next)
}

func releaseTwice(t *testing.T, s *subject) {
	scope, c := newScope(), claimOf("order-1", 1)
	s.release(t, scope, c.ID)
	s.claim(t, scope, c)
	s.release(t, scope, c.ID)
	s.release(t, scope, c.ID)
	s.wantApplied(t, s.claim(t, scope, c)[0], c)
}

func releaseTouchesNoOther(t *testing.T, s *subject) {
	scope, claims := newScope(), claimsOf(50, 0)
	s.claim(t, scope, claims...)
	s.release(t, scope, claims[20].ID)
	s.release(t, scope, "id-")
	for i, c := range claims {
		if i != 20 {
			wantExists(t, s.lookup(t, scope, c.ID), c)
		}
	}
}
