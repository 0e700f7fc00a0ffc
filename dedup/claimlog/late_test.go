package claimlog

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A block of claims that was given up and stands a second time behind a release claims again
// what was released, for a record that is forwarded and committed: the next copy is dropped.
func TestALateBlockUndoesNoRelease(t *testing.T) {
	logs, _ := aheadLogs(1)
	s := open(t, Options{Opener: logs, Wait: 5 * time.Second})
	mustClaim(t, s, claimOf("first", 1))
	wantOwner(t, mustClaim(t, s, claimOf("a", 2)), dedup.Applied, 2)
	all := logs.entries(testScope.ConsumerGroup)[0]
	late := all[len(all)-1].Block // an attempt of the same claim whose answer never came
	if err := s.Release(t.Context(), testScope, "a"); err != nil {
		t.Fatal(err)
	}
	logs.stand(testScope.ConsumerGroup, 0, late, time.Hour)
	wantOwner(t, mustClaim(t, s, claimOf("a", 3)), dedup.Applied, 3)
}

// With a ttl below ten minutes such a block claims an ID again whose claim has ended meanwhile, for
// a record that was forwarded long ago: the next message with that ID, out of the window, is
// dropped.
func TestALateBlockRevivesNoClaimThatHasEnded(t *testing.T) {
	logs, ahead := aheadLogs(1)
	s := open(t, Options{Opener: logs, Wait: 5 * time.Second})
	scope := testScope
	scope.TTL = time.Minute
	claim := func(offset int64) dedup.Answer {
		answers, err := s.Claim(t.Context(), scope, []dedup.Claim{claimOf("a", offset)})
		if err != nil {
			t.Fatal(err)
		}
		return answers[0]
	}
	mustClaim(t, s, claimOf("first", 1))
	wantOwner(t, claim(2), dedup.Applied, 2)
	all := logs.entries(testScope.ConsumerGroup)[0]
	late := all[len(all)-1].Block
	ahead.Store(int64(5 * time.Minute))
	logs.stand(testScope.ConsumerGroup, 0, late, time.Hour)
	wantOwner(t, claim(3), dedup.Applied, 3)
}
