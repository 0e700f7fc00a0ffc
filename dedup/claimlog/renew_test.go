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

// While a ttl is raised, a release with the shorter one comes to stand in front of a renewal with
// the longer one, which it voids. A process that begins to read once the release may have gone
// comes to the same verdict as one that has read it.
func TestWhatABlockIsJudgedByOutlivesIt(t *testing.T) {
	logs := newFakeLogs(1)
	logs.keeps = true
	now := time.Now()
	logs.now = func() time.Time { return now }
	s, other := open(t, Options{Opener: logs}), open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("a", 1))
	longer := testScope
	longer.Sliding, longer.TTL = true, 10*(testScope.TTL+Margin)
	releases := func() { _ = other.Release(t.Context(), testScope, "b") } // unreported
	logs.appended = func() fate { return unreported }
	for tries := 0; lastKind(t, logs) != kindRenewal; tries++ {
		if tries == 5 {
			t.Fatal("no renewal")
		}
		logs.beforeNext.Store(&releases)
		if _, err := s.Claim(t.Context(), longer, []dedup.Claim{claimOf("a", 2)}); err == nil {
			t.Fatal("the renewal was answered")
		}
		if _, err := s.Lookup(t.Context(), testScope, "a"); err != nil { // reads to the end
			t.Fatal(err)
		}
	}
	logs.appended = nil
	now = now.Add(testScope.TTL + Margin)
	mustClaim(t, s, claimOf("z", 1)) // the log's time goes on
	gone := 0
	for _, e := range logs.entries(testScope.ConsumerGroup)[0] {
		if e.Ends <= now.Add(Margin/2).UnixMilli() {
			gone++
		}
	}
	logs.retire(testScope.ConsumerGroup, 0, gone)
	for name, store := range map[string]*Store{"one that has read all": s,
		"one that begins now": open(t, Options{Opener: logs})} {
		got, err := store.Lookup(t.Context(), testScope, "a")
		if err != nil || got.Outcome != dedup.Undecided {
			t.Errorf("%s: got %+v, %v; the claim has ended, and its renewal did not count", name,
				got, err)
		}
	}
	if gone == 0 {
		t.Error("no block is gone: nothing is compared")
	}
}

// The copy finds the ID free, and loses against a claim that came to stand in front of its block.
func TestACopyThatLosesAgainstAClaimRenewsItIfItIsDue(t *testing.T) {
	logs := newFakeLogs(1)
	s, other := open(t, Options{Opener: logs}), open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("z", 1))
	claims := func() { mustClaim(t, other, claimOf("a", 1)) }
	logs.beforeNext.Store(&claims)
	longer := testScope
	longer.Sliding, longer.TTL = true, 2*testScope.TTL
	answers, err := s.Claim(t.Context(), longer, []dedup.Claim{claimOf("a", 2)})
	if err != nil {
		t.Fatal(err)
	}
	wantOwner(t, answers[0], dedup.Exists, 1)
	if got := lastKind(t, logs); got != kindRenewal {
		t.Errorf("the last block is of kind %d, want a renewal", got)
	}
}
