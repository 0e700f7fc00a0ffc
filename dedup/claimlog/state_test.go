package claimlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
)

// Lanes join once their claims can be decided: until then others may have the partitions.
func TestAwaitReturnsOnceTheLogWasRead(t *testing.T) {
	logs := newFakeLogs(2)
	wantOwner(t, mustClaim(t, open(t, Options{Opener: logs}), claimOf("a", 1)), dedup.Applied, 1)
	logs.mu.Lock()
	logs.why = errFate
	logs.mu.Unlock()
	s := open(t, Options{Opener: logs})
	hurried, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Await(hurried, testScope); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the log cannot be opened: %v", err)
	}
	if states := s.States(); len(states) != 1 || states[0].AtEnd || states[0].Err == nil {
		t.Errorf("got %+v", states)
	}
	logs.mu.Lock()
	logs.why = nil
	logs.mu.Unlock()
	if err := s.Await(t.Context(), testScope); err != nil {
		t.Error(err)
	}
	want := []State{{Group: testScope.ConsumerGroup, AtEnd: true, Claims: 2}}
	got := s.States()
	got[0].Of = 0 // one or two blocks
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whoever keeps one ID of a log comes to the answers about it of those who keep all.
func TestAnIndexOfOneIDAnswersAsAWholeOne(t *testing.T) {
	const id = dedup.ID("0")
	logs := newFakeLogs(2)
	whole := open(t, Options{Opener: logs, Path: t.TempDir()})
	one := open(t, Options{Opener: logs, Only: func(_ string, other dedup.ID) bool {
		return other == id
	}})
	random := rand.New(rand.NewPCG(29, 1))
	for step := range int64(300) {
		on := dedup.ID(strconv.Itoa(random.IntN(3)))
		s := []*Store{whole, one}[random.IntN(2)]
		switch what := random.IntN(20); {
		case what == 0:
			if err := whole.Forget(t.Context(), testScope); err != nil {
				t.Fatal(err)
			}
		case what < 4:
			if err := s.Release(t.Context(), testScope, on); err != nil {
				t.Fatal(err)
			}
		case on == id:
			mustClaim(t, s, claimOf(string(on), step))
		default:
			mustClaim(t, whole, claimOf(string(on), step))
		}
		a, err := whole.Lookup(t.Context(), testScope, id)
		if err != nil {
			t.Fatal(err)
		}
		b, err := one.Lookup(t.Context(), testScope, id)
		if err != nil {
			t.Fatal(err)
		}
		if a != b {
			t.Fatalf("step %d: %+v and %+v", step, a, b)
		}
	}
}
