package embedded

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
)

// While the owner's sync is held up, a look-up and another claim wait with it: what they tell must
// outlive a crash.
func TestOnlyWhatIsDurableIsTold(t *testing.T) {
	d := testkit.NewDisk()
	s := mustOpen(t, Options{Path: t.TempDir(), SweepInterval: -1, disk: d})
	defer s.Close()
	defer d.Release()
	mustClaim(t, s, claims(0, 1)) // makes the scope
	d.Hold()
	claimed, told := make(chan dedup.Answer, 2), make(chan dedup.Answer, 1)
	claim := func() {
		answers, err := s.Claim(t.Context(), scope, claims(1, 1))
		if err != nil {
			t.Error(err)
		}
		claimed <- answers[0]
	}
	go claim()
	select {
	case <-d.Syncing:
	case answer := <-claimed:
		t.Fatalf("answered %+v without a sync", answer)
	}
	go claim()
	go func() {
		answer, err := s.Lookup(t.Context(), scope, claims(1, 1)[0].ID)
		if err != nil {
			t.Error(err)
		}
		told <- answer
	}()
	select {
	case answer := <-told:
		t.Fatalf("told %+v before the sync", answer)
	case answer := <-claimed:
		t.Fatalf("answered %+v before the sync", answer)
	case <-time.After(100 * time.Millisecond):
	}
	d.Release()
	first, second := <-claimed, <-claimed
	if answer := <-told; answer.Outcome != dedup.Exists || first.Outcome == second.Outcome {
		t.Errorf("after the sync: %+v, %+v and %+v", answer, first, second)
	}
}
