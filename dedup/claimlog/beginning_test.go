package claimlog

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// keptLogs keep blocks for as long as testScope needs it.
func keptLogs() *fakeLogs {
	logs := newFakeLogs(1)
	logs.retention = testScope.TTL + Margin
	return logs
}

func TestALogThatLostItsBeginningIsNotClaimedInUntilThatIsAccepted(t *testing.T) {
	logs := keptLogs()
	running := open(t, Options{Opener: logs, Path: t.TempDir()})
	wantOwner(t, mustClaim(t, running, claimOf("a", 1)), dedup.Applied, 1)
	wantOwner(t, mustClaim(t, running, claimOf("b", 2)), dedup.Applied, 2)
	logs.retire(testScope.ConsumerGroup, 0, 1) // records were deleted, or retention was short
	fresh := open(t, Options{Opener: logs, Wait: 100 * time.Millisecond})
	_, err := fresh.Claim(t.Context(), testScope, []dedup.Claim{claimOf("a", 3)})
	if err == nil || !strings.Contains(err.Error(), dedup.ErrLost.Error()) ||
		!strings.Contains(err.Error(), "--accept-empty-store") {
		t.Fatalf("a process without an index claims: %v", err)
	}
	if err := fresh.Lost(t.Context(), testScope, time.Time{}); !errors.Is(err, dedup.ErrLost) {
		t.Errorf("a check says %v", err)
	}
	// Who has an index knows what is gone.
	if err := running.Lost(t.Context(), testScope, time.Now()); err != nil {
		t.Error(err)
	}
	wantOwner(t, mustClaim(t, running, claimOf("a", 4)), dedup.Exists, 1)
	if err := fresh.AcceptLoss(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	wantOwner(t, mustClaim(t, fresh, claimOf("a", 5)), dedup.Applied, 5)
	if err := fresh.Lost(t.Context(), testScope, time.Time{}); err != nil {
		t.Error(err)
	}
}

func TestALogThatLostWhatHasEndedIsWhole(t *testing.T) {
	logs := keptLogs()
	began := time.Now()
	var passed atomic.Int64
	logs.now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	s := open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("a", 1))
	mustClaim(t, s, claimOf("b", 2))
	passed.Store(int64(testScope.TTL + Margin))
	mustClaim(t, s, claimOf("c", 3))
	logs.retire(testScope.ConsumerGroup, 0, 2) // by retention
	fresh := open(t, Options{Opener: logs})
	wantOwner(t, mustClaim(t, fresh, claimOf("c", 4)), dedup.Exists, 3)
	if err := fresh.Lost(t.Context(), testScope, logs.now().Add(-testScope.TTL)); err != nil {
		t.Error(err)
	}
}

// All blocks are gone. The fences tell whether there were claims that hold.
func TestAnEmptiedLogIsJudgedByTheFences(t *testing.T) {
	logs := keptLogs()
	s := open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("a", 1))
	logs.retire(testScope.ConsumerGroup, 0, 1)
	fresh := open(t, Options{Opener: logs})
	for name, c := range map[string]struct {
		settled time.Time
		lost    bool
	}{
		"no fences":                  {time.Time{}, false},
		"fences of ended claims":     {time.Now().Add(-testScope.TTL - time.Minute), false},
		"fences of claims that hold": {time.Now().Add(-time.Minute), true},
	} {
		err := fresh.Lost(t.Context(), testScope, c.settled)
		if errors.Is(err, dedup.ErrLost) != c.lost {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fresh.AcceptLoss(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	if err := fresh.Lost(t.Context(), testScope, time.Now().Add(-time.Minute)); err != nil {
		t.Error(err)
	}
}

// A log that nobody has begun, or that keeps everything, has lost nothing.
func TestALogWithItsBeginningIsWhole(t *testing.T) {
	logs := keptLogs()
	s := open(t, Options{Opener: logs})
	if err := s.Lost(t.Context(), testScope, time.Now()); err != nil {
		t.Error(err)
	}
	mustClaim(t, s, claimOf("a", 1))
	if err := s.Lost(t.Context(), testScope, time.Now()); err != nil {
		t.Error(err)
	}
}
