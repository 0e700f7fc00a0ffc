package claimlog

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// slidingClaim claims in a scope that is sliding, until the claim is decided.
func slidingClaim(t *testing.T, s *Store, c dedup.Claim) dedup.Answer {
	t.Helper()
	scope := testScope
	scope.Sliding = true
	for deadline := time.Now().Add(30 * time.Second); ; {
		answers, err := s.Claim(t.Context(), scope, []dedup.Claim{c})
		if answers[0].Outcome != dedup.Undecided {
			return answers[0]
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// lastKind is the kind of the last block of a log with one shard.
func lastKind(t *testing.T, logs *fakeLogs) kind {
	t.Helper()
	entries := logs.entries(testScope.ConsumerGroup)[0]
	var b block
	if err := b.parse(entries[len(entries)-1].Block); err != nil {
		t.Fatal(err)
	}
	return b.kind
}

// Retention removes the claim, and the renewal says all that there was to know.
func TestARenewalIsEnoughToKnowAClaim(t *testing.T) {
	logs := newFakeLogs(1)
	now := time.Now()
	logs.now = func() time.Time { return now }
	s := open(t, Options{Opener: logs})
	first := slidingClaim(t, s, claimOf("a", 1))
	now = now.Add(testScope.TTL / 2)
	wantOwner(t, slidingClaim(t, s, claimOf("a", 2)), dedup.Exists, 1)
	if got := lastKind(t, logs); got != kindRenewal {
		t.Fatalf("the last block is of kind %d, want a renewal", got)
	}
	logs.retire(testScope.ConsumerGroup, 0, len(logs.entries(testScope.ConsumerGroup)[0])-1)
	now = now.Add(testScope.TTL * 3 / 4)
	again := open(t, Options{Opener: logs})
	got := mustClaim(t, again, claimOf("a", 3))
	wantOwner(t, got, dedup.Exists, 1)
	if !got.ClaimedAt.Equal(first.ClaimedAt) || got.Fingerprint != first.Fingerprint {
		t.Errorf("got %+v, want what the claim had: %+v", got, first)
	}
	now = now.Add(testScope.TTL / 2) // a ttl and a quarter after the renewal
	for _, store := range []*Store{s, again} {
		wantOwner(t, mustClaim(t, store, claimOf("a", 4)), map[bool]dedup.Outcome{
			true: dedup.Applied, false: dedup.Exists}[store == s], 4)
	}
}

// A release comes to stand between what the renewing process had read and its block.
func TestARenewalBehindAReleaseDoesNotCount(t *testing.T) {
	for name, id := range map[string]dedup.ID{"of the same ID": "a", "of another ID": "b"} {
		t.Run(name, func(t *testing.T) {
			logs := newFakeLogs(1)
			now := time.Now()
			logs.now = func() time.Time { return now }
			s, other := open(t, Options{Opener: logs}), open(t, Options{Opener: logs})
			mustClaim(t, s, claimOf("a", 1))
			mustClaim(t, s, claimOf("b", 1))
			now = now.Add(time.Minute * 9)
			longer := testScope
			longer.Sliding = true
			// The shard is read up to a young block, so that the renewal is not late.
			mustClaim(t, s, claimOf("c", 1))
			longer.TTL = 2 * testScope.TTL
			logs.retention = 0
			goes := func() {
				if err := other.Release(t.Context(), testScope, id); err != nil {
					t.Error(err)
				}
			}
			logs.beforeNext.Store(&goes)
			answers, err := s.Claim(t.Context(), longer, []dedup.Claim{claimOf("a", 2)})
			if err != nil {
				t.Fatal(err)
			}
			if id == "a" {
				wantOwner(t, answers[0], dedup.Applied, 2)
				return
			}
			wantOwner(t, answers[0], dedup.Exists, 1)
			if got := lastKind(t, logs); got != kindRenewal {
				t.Errorf("the last block is of kind %d, want a second renewal", got)
			}
		})
	}
}

// Where nothing is due, a copy writes what it writes in any scope: a block without claims.
func TestACopyOfAYoungClaimWritesNoRenewal(t *testing.T) {
	logs := newFakeLogs(1)
	s := open(t, Options{Opener: logs})
	slidingClaim(t, s, claimOf("a", 1))
	wantOwner(t, slidingClaim(t, s, claimOf("a", 2)), dedup.Exists, 1)
	if got := lastKind(t, logs); got != kindClaims {
		t.Errorf("the last block is of kind %d", got)
	}
}
