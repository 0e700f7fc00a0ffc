package claimlog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// impatient is sharer for a process whose calls are to fail soon.
func impatient(
	t *testing.T, logs *fakeLogs, net *fakeNet, name string, keeps bool, path string,
) *Store {
	t.Helper()
	o := Keepers{Instance: name, Address: name, Keep: keeps, Network: net.node(name),
		times: quickSharing}
	return open(t, Options{Opener: logs, Keepers: &o, Path: path, Wait: 500 * time.Millisecond})
}

func mustBeLost(t *testing.T, s *Store, settled time.Time, lost bool) {
	t.Helper()
	if err := s.Lost(t.Context(), testScope, settled); errors.Is(err, dedup.ErrLost) != lost {
		t.Errorf("%s: a check says: %v", s.o.Keepers.Instance, err)
	}
}

// No process has an index, so that nobody knows what is gone.
func TestKeepersMakeNoIndexOfALogThatLostItsBeginningUntilThatIsAccepted(t *testing.T) {
	logs, net := keptLogs(), newFakeNet()
	before := open(t, Options{Opener: logs})
	wantOwner(t, mustClaim(t, before, claimOf("a", 1)), dedup.Applied, 1)
	mustClaim(t, before, claimOf("b", 2))
	logs.retire(testScope.ConsumerGroup, 0, 1)
	keeper := impatient(t, logs, net, "keeper", true, t.TempDir())
	lanes := impatient(t, logs, net, "lanes", false, "")
	for _, s := range []*Store{keeper, lanes} {
		mustBeLost(t, s, time.Time{}, true)
	}
	_, err := keeper.Claim(t.Context(), testScope, []dedup.Claim{claimOf("a", 3)})
	if err == nil || !strings.Contains(err.Error(), dedup.ErrLost.Error()) ||
		!strings.Contains(err.Error(), "--accept-empty-store") {
		t.Errorf("a keeper without an index claims, or does not say why not: %v", err)
	}
	if state := keeper.States()[0]; !errors.Is(state.Err, dedup.ErrLost) {
		t.Errorf("its state does not tell: %+v", state)
	}
	_, err = lanes.Claim(t.Context(), testScope, []dedup.Claim{claimOf("a", 3)})
	if err == nil || !strings.Contains(err.Error(), "keeper is to") {
		t.Errorf("lanes claim by it, or do not say whom to look at: %v", err)
	}
	if err := lanes.AcceptLoss(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	if err := lanes.Await(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{keeper, lanes} {
		mustBeLost(t, s, time.Time{}, false)
	}
	wantOwner(t, mustClaim(t, lanes, claimOf("a", 4)), dedup.Applied, 4)
}

// A keeper has an index of what is gone. Nobody who asks it needs more, and it may begin again.
func TestKeepersWithAnIndexGoOnWhereTheLogLostItsBeginning(t *testing.T) {
	logs, net := keptLogs(), newFakeNet()
	dir := t.TempDir()
	keeper := sharer(t, logs, net, "keeper", Keepers{Keep: true}, dir)
	wantOwner(t, mustClaim(t, keeper, claimOf("a", 1)), dedup.Applied, 1)
	mustClaim(t, keeper, claimOf("b", 2))
	logs.retire(testScope.ConsumerGroup, 0, 1)
	lanes := sharer(t, logs, net, "lanes", Keepers{}, "")
	mustBeLost(t, lanes, time.Time{}, false)
	wantOwner(t, mustClaim(t, lanes, claimOf("a", 3)), dedup.Exists, 1)
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	keeper = sharer(t, logs, net, "keeper", Keepers{Keep: true}, dir)
	mustBeLost(t, keeper, time.Time{}, false)
	wantOwner(t, mustClaim(t, lanes, claimOf("a", 4)), dedup.Exists, 1)
}

// A keeper of a log without blocks finds nothing missing in it: only the fences tell.
func TestAnEmptiedLogOfKeepersIsJudgedByTheFences(t *testing.T) {
	logs, net := keptLogs(), newFakeNet()
	dir := t.TempDir()
	keeper := sharer(t, logs, net, "keeper", Keepers{Keep: true}, dir)
	mustClaim(t, keeper, claimOf("a", 1))
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	logs.retire(testScope.ConsumerGroup, 0, 1)
	fresh := impatient(t, logs, net, "fresh", true, t.TempDir())
	lanes := impatient(t, logs, net, "lanes", false, "")
	again := impatient(t, logs, net, "keeper", true, dir)
	for _, s := range []*Store{fresh, lanes} {
		mustBeLost(t, s, time.Now().Add(-time.Minute), true)
		mustBeLost(t, s, time.Now().Add(-testScope.TTL-time.Minute), false)
	}
	mustBeLost(t, again, time.Now().Add(-time.Minute), false)
	if err := lanes.AcceptLoss(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{fresh, lanes} {
		mustBeLost(t, s, time.Now().Add(-time.Minute), false)
	}
}
