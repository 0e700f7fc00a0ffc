package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// window is what must be true of one ID: who owns it, and when that ends. Calls take time, and
// stores count in seconds, so the end is known within bounds.
type window struct {
	scope       dedup.Scope
	granularity time.Duration
	repeats     bool // see Features
	owned       bool
	claim       dedup.Claim
	from, until time.Time // the claim ends between them
	ends        int       // how many claims were seen to have ended
}

func (s *subject) window(scope dedup.Scope) *window {
	return &window{scope: scope, granularity: s.features.ExpiryGranularity,
		repeats: s.features.Repeats}
}

// take compares an answer with the model, which follows it where both answers are right.
func (w *window) take(t *testing.T, c dedup.Claim, got dedup.Answer, began, ended time.Time) {
	t.Helper()
	mayStand := w.owned && began.Before(w.until)
	mayBeFree := !w.owned || !ended.Before(w.from)
	if w.repeats && mayBeFree && got.Owner == c.Owner && (!mayStand || c.Owner != w.claim.Owner) {
		got.Outcome = dedup.Applied // by this call, which the store has sent twice
	}
	switch got.Outcome {
	case dedup.Applied:
		if !mayBeFree {
			t.Fatalf("%s was claimed %v before the claim could end", c.ID, w.from.Sub(ended))
		}
		wantAnswer(t, got, dedup.Answer{Outcome: dedup.Applied, Owner: c.Owner,
			Fingerprint: c.Fingerprint})
		if w.owned {
			w.ends++
		}
		w.owned, w.claim = true, c
		w.from = began.Add(w.scope.TTL - w.granularity)
		w.until = ended.Add(w.scope.TTL + w.granularity)
	case dedup.Exists:
		if !mayStand {
			t.Fatalf("%s is owned %v after the claim must have ended", c.ID, began.Sub(w.until))
		}
		wantExists(t, got, w.claim)
		if c.Renews(w.scope, got.Owner) {
			w.renew(began, ended)
		}
	default:
		t.Fatalf("%s is undecided", c.ID)
	}
}

// renew is what a copy does: it puts the end off if that is a tenth of the ttl behind.
func (w *window) renew(began, ended time.Time) {
	const share = 10
	from := began.Add(w.scope.TTL - w.scope.TTL/share - w.granularity)
	w.from = later(w.from, from)
	w.until = later(w.until, ended.Add(w.scope.TTL+w.granularity))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// claimIn claims in a window's scope, and compares.
func (s *subject) claimIn(t *testing.T, w *window, c dedup.Claim) dedup.Answer {
	t.Helper()
	began := time.Now()
	answers, _, err := s.insist(t.Context(), w.scope, []dedup.Claim{c})
	if err != nil {
		t.Fatal(err)
	}
	got := answers[0]
	if !w.owned && got.Outcome == dedup.Exists && got.Owner == c.Owner {
		got.Outcome = dedup.Applied // a repetition was needed, and found it
	}
	w.take(t, c, got, began, time.Now())
	return answers[0]
}

// randomWindows claims, copies and releases as it comes, and compares every answer with the model.
func randomWindows(t *testing.T, s *subject) {
	const ids, ttls = 6, 5
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	scope := s.newSlidingScope()
	windows := make([]*window, ids)
	for i := range windows {
		windows[i] = s.window(scope)
	}
	n := 0
	for began := time.Now(); time.Since(began) < ttls*scope.TTL; {
		i := r.IntN(ids)
		w, id := windows[i], string(rune('a'+i))
		switch p := r.IntN(20); {
		case p == 0:
			s.release(t, scope, dedup.ID(id))
			w.owned = false
		case p < 5 && w.owned: // the owner comes again
			c := w.claim
			c.Copied = r.IntN(2) == 0
			s.claimIn(t, w, c)
		default:
			n++
			s.claimIn(t, w, claimOf(id, n))
		}
		// some IDs are left alone for long
		if r.IntN(12) == 0 {
			wait(t, time.Duration(r.Int64N(int64(scope.TTL))))
		} else {
			wait(t, time.Duration(r.Int64N(int64(scope.TTL/40))))
		}
	}
}
