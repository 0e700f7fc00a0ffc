package embedded

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
)

// wallClock is wrong by an error that may change, on a machine on which time goes on.
type wallClock struct{ right, wrong time.Duration }

func (w *wallClock) open(t *testing.T, path string) *Store {
	start := w.right
	return mustOpen(t, Options{
		Path: path, SweepInterval: -1,
		Now:     func() time.Time { return time.Unix(1_800_000_000, 0).Add(w.right + w.wrong) },
		elapsed: func() time.Duration { return w.right - start },
	})
}

// run lets time pass with a sweep every ten minutes, and makes sure that segments have their
// indexes, so that they could go.
func (w *wallClock) run(t *testing.T, s *Store, long time.Duration) {
	t.Helper()
	for end := w.right + long; w.right < end; {
		w.right += min(10*time.Minute, end-w.right)
		if _, err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, time.Minute, "all to be indexed", func() bool {
		stats := s.stats()[0]
		return stats.Indexes <= stats.Segments
	})
	if _, err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A clock that was wrong for hours forgets no claim for good: neither the ones that were made
// before, when it was ahead, nor the ones that were made meanwhile, when it was behind. The process
// may start with the wrong time.
func TestAWrongClockForgetsNothingForGood(t *testing.T) {
	week := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: 7 * 24 * time.Hour, Buckets: 1}
	for name, wrong := range map[string]time.Duration{"ahead": 8 * 24 * time.Hour,
		"far ahead": 9000 * 24 * time.Hour, "behind": -9000 * 24 * time.Hour} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				path := t.TempDir()
				var w wallClock
				s := w.open(t, path)
				again := func() {
					if !restart {
						return
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = w.open(t, path)
				}
				claim := func(n int, want dedup.Outcome) {
					t.Helper()
					answers, err := s.Claim(t.Context(), week, claims(n, 1))
					if err != nil || answers[0].Outcome != want {
						t.Errorf("claim %d: %v, %v; want %v", n, answers, err, want)
					}
				}
				claim(0, dedup.Applied)
				w.run(t, s, 25*time.Hour)
				w.wrong = wrong
				again()
				w.run(t, s, 6*time.Hour)
				claim(1, dedup.Applied)
				w.run(t, s, 6*time.Hour)
				w.wrong = 0
				again()
				w.run(t, s, time.Hour)
				claim(0, dedup.Exists)
				claim(1, dedup.Exists)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
