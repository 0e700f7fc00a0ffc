package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var moveBehaviours = []behaviour{
	{"what stands is exported", exportStanding},
	{"an empty scope exports nothing", exportNothing},
	{"an export ends with the first error of its reader", exportEnds},
	{"many claims are exported in pages", exportPages},
	{"some claims are found by their ids", findSome},
	{"an imported claim has its own owner and times", importExactly},
	{"an import touches no claim that stands", importBesideClaims},
	{"an import may be repeated", importAgain},
	{"an imported claim ends when the original does", importEnds},
	{"a claim that has ended is not imported", importEnded},
	{"an import takes the place of a claim that has ended", importOverEnded},
	{"an id that was released may be imported", importReleased},
	{"any id may be imported and exported", importStrangeIDs},
	{"a cancelled context leaves imports undecided", importCancelled},
	{"imported claims stand after a reopen", importDurable},
	{"what one store exports another one has", importRandom},
}

// mover is the store, with a scope that is registered.
func (s *subject) mover(t *testing.T, scope dedup.Scope) dedup.Mover {
	t.Helper()
	s.register(t, scope)
	return s.Store.(dedup.Mover)
}

// standingOf is the claim of record n, which was made a while ago and stands for long enough.
func standingOf(id string, n int) dedup.Standing {
	c := claimOf(id, n)
	now := time.Now().Truncate(time.Millisecond)
	return dedup.Standing{ID: c.ID, Owner: c.Owner, Fingerprint: c.Fingerprint,
		ClaimedAt: now.Add(-time.Hour - time.Duration(n)*time.Millisecond),
		Ends:      now.Add(10*time.Minute + time.Duration(n)*time.Second)}
}

// export collects what the store tells, each claim once.
func (s *subject) export(t *testing.T, scope dedup.Scope) map[dedup.ID]dedup.Standing {
	t.Helper()
	told := make(map[dedup.ID]dedup.Standing)
	err := s.Store.(dedup.Mover).Export(t.Context(), scope, func(page []dedup.Standing) error {
		if len(page) == 0 || len(page) > dedup.StandingPage {
			t.Errorf("a page of %d claims", len(page))
		}
		for _, c := range page {
			if other, twice := told[c.ID]; twice {
				s.wantStanding(t, c, other)
			}
			told[c.ID] = c
		}
		clear(page)
		return nil
	})
	if err != nil {
		t.Fatalf("Export: %v", err)
	}
	return told
}

// wantStanding compares claims; when they end as exactly as a store can tell, and as the time
// allows that the calls took.
func (s *subject) wantStanding(t *testing.T, got, want dedup.Standing) {
	t.Helper()
	within := s.features.ExpiryGranularity + time.Second + time.Since(s.began)
	if off := got.Ends.Sub(want.Ends); off.Abs() > within {
		t.Errorf("%.40q ends %v later than it must", got.ID, off)
	}
	if !got.ClaimedAt.Equal(want.ClaimedAt) {
		t.Errorf("%.40q was claimed at %v, want %v", got.ID, got.ClaimedAt, want.ClaimedAt)
	}
	if got.ID != want.ID || got.Owner != want.Owner || got.Fingerprint != want.Fingerprint {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func (s *subject) wantAll(t *testing.T, got map[dedup.ID]dedup.Standing, want []dedup.Standing) {
	t.Helper()
	for _, c := range want {
		found, ok := got[c.ID]
		if !ok {
			t.Errorf("%.40q is missing", c.ID)
			continue
		}
		s.wantStanding(t, found, c)
	}
	if len(got) != len(want) {
		t.Errorf("%d claims, want %d", len(got), len(want))
	}
}

// takeOver expects that every claim is decided at once.
func (s *subject) takeOver(
	t *testing.T, scope dedup.Scope, claims ...dedup.Standing,
) []dedup.Answer {
	t.Helper()
	answers, err := s.mover(t, scope).Import(t.Context(), scope, claims)
	if err != nil {
		t.Fatalf("Import: %v", err)
	}
	if len(answers) != len(claims) {
		t.Fatalf("Import returned %d answers to %d claims", len(answers), len(claims))
	}
	return answers
}

// wantTold checks the outcome, and that the owner and the time are those of the claim.
func wantTold(t *testing.T, got dedup.Answer, outcome dedup.Outcome, c dedup.Standing) {
	t.Helper()
	want := c.Answer()
	want.Outcome = outcome
	wantSameTime(t, got, want)
	if got.ClaimedAt = want.ClaimedAt; got != want {
		t.Fatalf("answer = %+v, want %+v", got, want)
	}
}

func exportStanding(t *testing.T, s *subject) {
	scope, neighbour := newScope(), newScope()
	s.register(t, scope)
	claims := claimsOf(300, 0)
	before := time.Now()
	answers := s.claim(t, scope, claims...)
	s.claim(t, neighbour, claimOf("neighbour", 1))
	s.release(t, scope, claims[0].ID)
	s.release(t, scope, claims[1].ID)
	again := s.claim(t, scope, claimOf("id-000001", 4711))[0]
	took := time.Since(before)
	var want []dedup.Standing
	for i, a := range answers {
		switch i {
		case 0:
			continue
		case 1:
			a = again
		}
		want = append(want, dedup.Standing{ID: claims[i].ID, Owner: a.Owner,
			Fingerprint: a.Fingerprint, ClaimedAt: a.ClaimedAt,
			Ends: before.Add(took/2 + scope.TTL)})
	}
	s.wantAll(t, s.export(t, scope), want)
}

func exportNothing(t *testing.T, s *subject) {
	scope, unknown := newScope(), newScope()
	s.register(t, scope)
	s.claim(t, scope, claimOf("order-1", 1))
	s.release(t, scope, "order-1")
	s.wantAll(t, s.export(t, scope), nil)
	s.wantAll(t, s.export(t, unknown), nil)
}

func exportEnds(t *testing.T, s *subject) {
	scope, full := newScope(), errors.New("full")
	s.register(t, scope)
	s.claim(t, scope, claimsOf(20, 0)...)
	pages := 0
	err := s.Store.(dedup.Mover).Export(t.Context(), scope, func([]dedup.Standing) error {
		pages++
		return full
	})
	if !errors.Is(err, full) || pages != 1 {
		t.Errorf("after %d pages: %v", pages, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = s.Store.(dedup.Mover).Export(ctx, scope, func([]dedup.Standing) error {
		t.Error("a page after the context had ended")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}

func exportPages(t *testing.T, s *subject) {
	scope := newScope()
	scope.Buckets = 1 // a store with partitions has all of them in one
	s.register(t, scope)
	claims := claimsOf(2*dedup.StandingPage+1, 0)
	answers, _, err := s.insist(t.Context(), scope, claims)
	if err != nil {
		t.Fatal(err)
	}
	got := s.export(t, scope)
	for i, c := range claims {
		found := got[c.ID]
		found.Ends = time.Time{}
		s.wantStanding(t, found, dedup.Standing{ID: c.ID, Owner: c.Owner,
			Fingerprint: c.Fingerprint, ClaimedAt: answers[i].ClaimedAt})
	}
	if len(got) != len(claims) {
		t.Errorf("%d claims, want %d", len(got), len(claims))
	}
}

func findSome(t *testing.T, s *subject) {
	scope := newScope()
	claims := []dedup.Standing{standingOf("a", 1), standingOf("b", 2), standingOf("c", 3)}
	s.takeOver(t, scope, claims...)
	s.release(t, scope, "b")
	find := func(ids ...dedup.ID) map[dedup.ID]dedup.Standing {
		found, err := s.mover(t, scope).Find(t.Context(), scope, ids)
		if err != nil {
			t.Fatalf("Find: %v", err)
		}
		got := make(map[dedup.ID]dedup.Standing)
		for _, c := range found {
			got[c.ID] = c
		}
		return got
	}
	s.wantAll(t, find("a", "b", "unknown"), claims[:1])
	s.wantAll(t, find("c", "a"), []dedup.Standing{claims[0], claims[2]})
	s.wantAll(t, find("b"), nil)
	s.wantAll(t, find(), nil)
}
