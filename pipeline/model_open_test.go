package pipeline

import (
	"strings"
	"testing"
)

// The model knows what stays open, and shows it as soon as it may. A case that is not found any more
// is mended: then it leaves modelOpen and docs/guarantees.md.
func TestModelShowsWhatStaysOpen(t *testing.T) {
	const most = 3000 // seeds
	for _, c := range []struct {
		name   string
		open   modelOpen
		effect string
	}{
		{"a rewind over an open transaction", modelOpen{rewindOverOpenTransactions: true}, "doubled"},
		{"claims that end below the fence", modelOpen{expiryBelowFence: true}, "lost"},
		{"a rewind over an old fence", modelOpen{rewindOverOldFence: true}, "doubled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(most) {
				w, violated := playSeed(t, seed, nil, c.open, false)
				if violated == "" {
					continue
				}
				if !strings.HasPrefix(violated, c.effect) {
					t.Errorf("seed %d: %s; want that something is %s", seed, violated, c.effect)
				}
				t.Logf("seed %d, step %d: %s", seed, w.step, violated)
				return
			}
			t.Errorf("not found in %d seeds", most)
		})
	}
}
