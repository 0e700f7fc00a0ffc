package claimlog

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A keeper is stopped with a request that it has not looked at. Meanwhile another one answers that,
// the message is forwarded, and an operator releases the ID. The first keeper goes on.
func TestAClaimThatWaitedInAStoppedKeeperUndoesNoRelease(t *testing.T) {
	logs, net := newFakeLogs(1), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, "")
	mustClaim(t, one, claimOf("before", 0))
	shared := one.logs[testScope.ConsumerGroup].(*sharing)
	q := shared.request(opClaim, testScope)
	q.keeper, q.limit = one.process, 10*time.Second
	q.sections = []section{{seen: shared.keeping(0).sight(0),
		claims: []dedup.Claim{claimOf("a", 1)}}}
	waiting := q.append(nil)

	wantOwner(t, mustClaim(t, one, claimOf("a", 1)), dedup.Applied, 1)
	if err := one.Release(t.Context(), testScope, "a"); err != nil {
		t.Fatal(err)
	}
	a, err := parseReply(one.answer(t.Context(), waiting), &q)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.sections[0].answers[0]; got.Outcome != dedup.Undecided {
		t.Errorf("the claim that came late is answered: %+v", got)
	}
	wantOwner(t, mustClaim(t, one, claimOf("a", 2)), dedup.Applied, 2)
}

// Who does not say how far it knows the shard claims nothing yet.
func TestAClaimThatDoesNotSayWhatItHasSeenIsNotMade(t *testing.T) {
	logs, net := newFakeLogs(1), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, "")
	mustClaim(t, one, claimOf("before", 0))
	before := len(logs.entries(testScope.ConsumerGroup)[0])
	shared := one.logs[testScope.ConsumerGroup].(*sharing)
	q := shared.request(opClaim, testScope)
	q.keeper, q.limit = one.process, 10*time.Second
	q.sections = []section{{seen: notSight, claims: []dedup.Claim{claimOf("a", 1)}}}
	a, err := parseReply(one.answer(t.Context(), q.append(nil)), &q)
	if err != nil || a.sections[0].status != notSeen || a.sections[0].seen.Next != int64(before) {
		t.Errorf("%+v (%v)", a, err)
	}
	if now := len(logs.entries(testScope.ConsumerGroup)[0]); now != before {
		t.Error("a block was written")
	}
}

// A release that came late, or twice, would release what was claimed since.
func TestATicketIsGoodOnceAndSoon(t *testing.T) {
	var out tickets
	now := time.Now()
	ticket := out.issue(now)
	if out.take(ticket+1, now) || !out.take(ticket, now.Add(time.Second)) || out.take(ticket, now) {
		t.Error("a ticket is not good once")
	}
	for _, jump := range []time.Duration{time.Minute, -time.Minute} {
		if out.take(out.issue(now), now.Add(jump)) {
			t.Errorf("a ticket is good after %v", jump)
		}
	}
}

// Lanes that keep nothing release through keepers.
func TestAReleaseThroughAKeeperIsDoneOnce(t *testing.T) {
	logs, net := newFakeLogs(2), newFakeNet()
	keeper := sharer(t, logs, net, "keeper", Keepers{Keep: true}, "")
	lanes := sharer(t, logs, net, "lanes", Keepers{}, "")
	mustClaim(t, keeper, claimOf("a", 1))
	if err := lanes.Release(t.Context(), testScope, "a"); err != nil {
		t.Fatal(err)
	}
	wantOwner(t, mustClaim(t, lanes, claimOf("a", 2)), dedup.Applied, 2)
	net.befall(func(from, to string) journey {
		return journey{answerLost: from == "lanes" && to == "keeper"}
	})
	if err := lanes.Release(t.Context(), testScope, "a"); err == nil {
		t.Error("a release of unknown outcome is told as done")
	}
	net.befall(nil)
	mustClaim(t, lanes, claimOf("a", 3))
}
