package claimlog

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// The ttl is lowered, and then the retention, to the new ttl and an hour. Claims of the longer ttl
// that still live would be gone from the log: a process without an index would forward their
// copies.
func TestALoweredTTLForgetsNoClaimThatStillHolds(t *testing.T) {
	logs, scope, s := loweredTTL(t)
	fresh := open(t, Options{Opener: logs, Wait: 5 * time.Second})
	if got := claimIn(t, s, scope, claimOf("a", 2)); got.Owner.Offset != 1 {
		t.Fatalf("the process that has an index says %+v", got)
	}
	wantOwner(t, claimIn(t, fresh, scope, claimOf("a", 3)), dedup.Exists, 1)
}

// loweredTTL has a claim of ID a that holds for ten hours yet, in the index of the store, and whose
// block is gone from the log.
func loweredTTL(t *testing.T) (*fakeLogs, dedup.Scope, *Store) {
	t.Helper()
	logs := newFakeLogs(1)
	logs.retention = 24 * time.Hour
	now := time.Now()
	logs.now = func() time.Time { return now }
	s := open(t, Options{Opener: logs, Wait: 5 * time.Second, Path: t.TempDir()})
	longer := testScope
	longer.TTL = 13 * time.Hour
	wantOwner(t, claimIn(t, s, longer, claimOf("a", 1)), dedup.Applied, 1)
	now = now.Add(3 * time.Hour)
	logs.retention = testScope.TTL + Margin // lowered with the ttl
	claimIn(t, s, testScope, claimOf("z", 8))
	claimIn(t, s, testScope, claimOf("z", 8))
	logs.retire(testScope.ConsumerGroup, 0, 1)
	return logs, testScope, s
}

func claimIn(t *testing.T, s *Store, scope dedup.Scope, c dedup.Claim) dedup.Answer {
	t.Helper()
	answers, err := s.Claim(t.Context(), scope, []dedup.Claim{c})
	if err != nil {
		t.Fatal(err)
	}
	return answers[0]
}

// Otherwise what is claimed in a scope of the same name is taken for missing by that note.
func TestAForgottenScopeLeavesNoNoteOfWhatWasWrittenAgain(t *testing.T) {
	logs, scope, s := loweredTTL(t)
	registry := logs.Registry(scope.ConsumerGroup)
	note := func() []byte {
		text, err := registry.Decided(t.Context(), carriedKey(scope.Name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if note() == nil {
		t.Fatal("nothing was noted")
	}
	if err := s.Forget(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if text := note(); text != nil {
		t.Errorf("there is %s", text)
	}
}
