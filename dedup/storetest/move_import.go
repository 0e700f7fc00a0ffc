package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

func importExactly(t *testing.T, s *subject) {
	scope := newScope()
	var claims []dedup.Standing
	for n := range 300 {
		claims = append(claims, standingOf(fmt.Sprint("order-", n), n))
	}
	claims[0].Owner = dedup.Coordinates{Partition: -1, Offset: -1, LeaderEpoch: -1} // by hand
	claims[0].Fingerprint = dedup.Fingerprint{}
	for i, a := range s.takeOver(t, scope, claims...) {
		wantTold(t, a, dedup.Applied, claims[i])
	}
	for _, c := range claims[:20] {
		wantTold(t, s.lookup(t, scope, c.ID), dedup.Exists, c)
		wantTold(t, s.claim(t, scope, claimOf(string(c.ID), 4711))[0], dedup.Exists, c)
	}
	s.wantAll(t, s.export(t, scope), claims)
}

func importBesideClaims(t *testing.T, s *subject) {
	scope, c := newScope(), claimOf("order-1", 1)
	first := s.claim(t, scope, c)[0]
	other, free := standingOf("order-1", 2), standingOf("order-2", 3)
	answers := s.takeOver(t, scope, other, free)
	wantExists(t, answers[0], c)
	wantSameTime(t, answers[0], first)
	wantTold(t, answers[1], dedup.Applied, free)
	wantExists(t, s.lookup(t, scope, "order-1"), c)
}

// importAgain repeats with another end, as a clock that has moved has it: that of the first import
// counts.
func importAgain(t *testing.T, s *subject) {
	scope, c := newScope(), standingOf("order-1", 1)
	wantTold(t, s.takeOver(t, scope, c)[0], dedup.Applied, c)
	later := c
	later.Ends = c.Ends.Add(time.Hour)
	wantTold(t, s.takeOver(t, scope, later)[0], dedup.Exists, c)
	s.wantAll(t, s.export(t, scope), []dedup.Standing{c})
}

func importEnds(t *testing.T, s *subject) {
	scope, other := newScope(), claimOf("order-1", 2)
	c, long := standingOf("order-1", 1), standingOf("order-2", 3)
	var got dedup.Answer
	for lives := 3 * time.Second; got.Outcome == dedup.Undecided; lives *= 2 {
		c.Ends = time.Now().Add(lives).Truncate(time.Millisecond)
		got = s.takeOver(t, scope, c, long)[0] // undecided if it has ended on a busy machine
	}
	wantTold(t, got, dedup.Applied, c)
	eventually(t, s.expiry()+time.Until(c.Ends), "the claim ends", func() bool {
		got = s.claim(t, scope, other)[0]
		return got.Outcome == dedup.Applied
	})
	s.wantApplied(t, got, other)
	early := time.Until(c.Ends) - s.features.ExpiryGranularity - 100*time.Millisecond
	if early > 0 {
		t.Errorf("the claim ended %v early", early)
	}
	wantTold(t, s.lookup(t, scope, long.ID), dedup.Exists, long)
}

func importEnded(t *testing.T, s *subject) {
	scope, c, long := newScope(), standingOf("order-1", 1), standingOf("order-2", 2)
	c.Ends = time.Now().Add(-time.Second)
	answers := s.takeOver(t, scope, c, long)
	if answers[0] != (dedup.Answer{}) {
		t.Errorf("answer to a claim that has ended: %+v", answers[0])
	}
	wantTold(t, answers[1], dedup.Applied, long)
	s.wantFree(t, scope, c.ID)
	s.wantAll(t, s.export(t, scope), []dedup.Standing{long})
}

func importOverEnded(t *testing.T, s *subject) {
	scope, c := newScope(), standingOf("order-1", 2)
	scope.TTL = briefly
	s.claim(t, scope, claimOf("order-1", 1))
	eventually(t, s.expiry(), "the claim ends", func() bool {
		return s.lookup(t, scope, "order-1").Outcome == dedup.Undecided
	})
	s.wantAll(t, s.export(t, scope), nil)
	wantTold(t, s.takeOver(t, scope, c)[0], dedup.Applied, c)
	s.wantAll(t, s.export(t, scope), []dedup.Standing{c})
}

// importReleased imports a claim that ends earlier than the one that was released.
func importReleased(t *testing.T, s *subject) {
	scope, c, next := newScope(), standingOf("order-1", 2), claimOf("order-1", 3)
	s.claim(t, scope, claimOf("order-1", 1))
	s.release(t, scope, "order-1")
	wantTold(t, s.takeOver(t, scope, c)[0], dedup.Applied, c)
	wantTold(t, s.lookup(t, scope, "order-1"), dedup.Exists, c)
	s.release(t, scope, "order-1")
	s.wantFree(t, scope, "order-1")
	s.wantApplied(t, s.claim(t, scope, next)[0], next)
}

func importStrangeIDs(t *testing.T, s *subject) {
	scope := newScope()
	var claims, told []dedup.Standing
	for n, row := range strangeIDs {
		c := standingOf(row.id, n)
		claims = append(claims, c)
		if s.features.LongestID == 0 || len(c.ID) <= s.features.LongestID {
			told = append(told, c)
		}
	}
	for i, a := range s.takeOver(t, scope, claims...) {
		wantTold(t, a, dedup.Applied, claims[i])
	}
	for _, c := range claims {
		wantTold(t, s.lookup(t, scope, c.ID), dedup.Exists, c)
	}
	if len(told) == len(claims) {
		s.wantAll(t, s.export(t, scope), claims)
		return
	}
	err := s.Store.(dedup.Mover).Export(t.Context(), scope, func([]dedup.Standing) error {
		return nil
	})
	if !errors.Is(err, dedup.ErrLongIDs) {
		t.Errorf("Export of IDs that the store does not keep: %v, want ErrLongIDs", err)
	}
}

func importCancelled(t *testing.T, s *subject) {
	scope, c := newScope(), standingOf("order-1", 1)
	mover := s.mover(t, scope)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answers, err := mover.Import(ctx, scope, []dedup.Standing{c})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Import with a cancelled context: %v", err)
	}
	wantUndecided(t, answers, 1)
	if _, err := mover.Find(ctx, scope, []dedup.ID{c.ID}); !errors.Is(err, context.Canceled) {
		t.Errorf("Find with a cancelled context: %v", err)
	}
	if a := s.takeOver(t, scope, c)[0]; a.Outcome == dedup.Undecided {
		t.Error("still undecided")
	}
	wantTold(t, s.lookup(t, scope, c.ID), dedup.Exists, c)
}

func importDurable(t *testing.T, s *subject) {
	if s.features.Reopen == nil {
		t.Skip("the store cannot be reopened")
	}
	scope := newScope()
	var claims []dedup.Standing
	for n := range 100 {
		claims = append(claims, standingOf(fmt.Sprint("order-", n), n))
	}
	s.takeOver(t, scope, claims...)
	reopened := &subject{Store: s.features.Reopen(t, s.Store), features: s.features,
		began: s.began}
	reopened.wantAll(t, reopened.export(t, scope), claims)
	for _, c := range claims {
		wantTold(t, reopened.lookup(t, scope, c.ID), dedup.Exists, c)
	}
}

// importRandom moves claims of any owner, age and end from scope to scope.
func importRandom(t *testing.T, s *subject) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	scope, next := newScope(), newScope()
	next.Buckets = 3
	now := time.Now().Truncate(time.Millisecond)
	var claims []dedup.Standing
	for n := range 200 {
		c := standingOf(fmt.Sprintf("%x-%d", random.Uint32(), n), n)
		for i := range c.Fingerprint {
			c.Fingerprint[i], c.Owner.TopicID[i] = byte(random.Int()), byte(random.Int())
		}
		c.Owner.Partition, c.Owner.LeaderEpoch = random.Int32(), random.Int32()-1
		c.Owner.Offset = random.Int64()
		c.ClaimedAt = now.Add(-time.Duration(random.Int64N(int64(300 * 24 * time.Hour)))).
			Truncate(time.Millisecond)
		c.Ends = now.Add(time.Minute + time.Duration(random.Int64N(int64(scope.TTL)))).
			Truncate(time.Millisecond)
		claims = append(claims, c)
	}
	s.takeOver(t, scope, claims...)
	moved := make([]dedup.Standing, 0, len(claims))
	for _, c := range s.export(t, scope) {
		moved = append(moved, c)
	}
	slices.SortFunc(moved, func(a, b dedup.Standing) int { return cmp.Compare(a.ID, b.ID) })
	for i, a := range s.takeOver(t, next, moved...) {
		wantTold(t, a, dedup.Applied, moved[i])
	}
	s.wantAll(t, s.export(t, next), claims)
}
