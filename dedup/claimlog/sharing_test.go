package claimlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

var quickSharing = sharingTimes{look: 2 * time.Millisecond, kept: 200 * time.Millisecond,
	drain: 10 * time.Millisecond, adopt: 300 * time.Millisecond, hedge: 20 * time.Millisecond}

// sharer opens a process that shares the shards with the others in a network.
func sharer(
	t *testing.T, logs *fakeLogs, net *fakeNet, name string, o Keepers, path string,
) *Store {
	t.Helper()
	o.Instance, o.Address, o.Network, o.times = name, name, net.node(name), quickSharing
	return open(t, Options{Opener: logs, Keepers: &o, Path: path, Wait: 20 * time.Second})
}

// The suite of all stores, with two processes that ask each other beside one that keeps all.
func TestConformanceOfKeepers(t *testing.T) {
	for _, copies := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d copies", copies), func(t *testing.T) {
			logs := newFakeLogs(5)
			net := newFakeNet()
			var names atomic.Int64
			next := func(t *testing.T) *Store {
				return sharer(t, logs, net, fmt.Sprintf("p%d", names.Add(1)),
					Keepers{Keep: true, Copies: copies}, "")
			}
			storetest.Run(t, func(t *testing.T) dedup.Store {
				return storetest.InTurn(next(t), next(t),
					open(t, Options{Opener: logs, Wait: 20 * time.Second})) // an earlier version
			}, storetest.Features{ExpiryGranularity: 50 * time.Millisecond, Repeats: true})
		})
	}
}

// keptBy is who answers for each shard, as a process knows.
func keptBy(s *Store) map[int][]string {
	by := make(map[int][]string)
	for _, state := range s.States() {
		for _, k := range state.Keepers {
			for _, shard := range k.Shards {
				by[shard] = append(by[shard], k.Instance)
			}
		}
	}
	return by
}

func awaitKept(t *testing.T, s *Store, what string, holds func(map[int][]string) bool) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, what, func() bool { return holds(keptBy(s)) })
}

func allBy(shards, copies int) func(map[int][]string) bool {
	return func(by map[int][]string) bool {
		for shard := range shards {
			if len(by[shard]) != copies {
				return false
			}
		}
		return len(by) == shards
	}
}

// While processes come and go, lanes of all of them claim without a pause: a shard is answered for
// until its next keeper has read it.
func TestAMoveOfAShardHoldsNobodyUp(t *testing.T) {
	const shards = 6
	logs, net := newFakeLogs(shards), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, t.TempDir())
	if err := one.Await(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var lane sync.WaitGroup
	var longest time.Duration
	lane.Go(func() {
		for i := int64(0); ctx.Err() == nil; i++ {
			began := time.Now()
			mustClaimAll(t, one, i, 20)
			longest = max(longest, time.Since(began))
		}
	})
	for i, name := range []string{"two", "three", "four"} {
		other := sharer(t, logs, net, name, Keepers{Keep: true}, t.TempDir())
		if err := other.Await(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
		most := (shards + i + 1) / (i + 2)
		awaitKept(t, one, name+" has its part", func(by map[int][]string) bool {
			has := make(map[string]int)
			for _, names := range by {
				has[names[0]]++
			}
			return allBy(shards, 1)(by) && has["one"] <= most && has[name] > 0
		})
	}
	cancel()
	lane.Wait()
	if longest > 5*time.Second {
		t.Errorf("a batch took %v", longest)
	}
}

// mustClaimAll claims IDs of a batch, each of which is new.
func mustClaimAll(t *testing.T, s *Store, batch int64, count int) {
	claims := make([]dedup.Claim, count)
	for i := range claims {
		claims[i] = claimOf(fmt.Sprintf("%d/%d", batch, i), batch*int64(count)+int64(i))
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		answers, err := s.Claim(t.Context(), testScope, claims)
		decided := 0
		for i, a := range answers {
			switch {
			case a.Outcome == dedup.Undecided:
			case a.Owner != claims[i].Owner:
				t.Errorf("batch %d: %+v owns the ID of %+v", batch, a.Owner, claims[i].Owner)
				return
			default:
				decided++
			}
		}
		if decided == count {
			return
		}
		if t.Context().Err() != nil || time.Now().After(deadline) {
			t.Errorf("batch %d: %d of %d decided: %v", batch, decided, count, err)
			return
		}
	}
}

// The index of a shard that others keep is deleted once they have read it, and not before.
func TestTheFilesOfAShardThatMovedAreDeleted(t *testing.T) {
	const shards = 4
	logs, net := newFakeLogs(shards), newFakeNet()
	dir := t.TempDir()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, dir)
	mustClaimAll(t, one, 0, 50)
	two := sharer(t, logs, net, "two", Keepers{Keep: true}, t.TempDir())
	if err := two.Await(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, "half of the files are gone", func() bool {
		entries, err := os.ReadDir(filepath.Dir(one.indexPath(testScope.ConsumerGroup, 0)))
		return err == nil && len(entries) == shards/2
	})
	mustClaimAll(t, two, 0, 50)
}

// Others answer for the shards, and claims are decided; still the next keeper must not be restarted
// before this one has read its part.
func TestAKeeperIsReadyOnceItHasReadWhatItIsToKeep(t *testing.T) {
	logs, net := newFakeLogs(4), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true, Copies: 2}, "")
	mustClaimAll(t, one, 0, 50)
	logs.mute.Store(true)
	two := sharer(t, logs, net, "two", Keepers{Keep: true, Copies: 2}, "")
	if err := two.Await(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	if state := two.States()[0]; state.AtEnd || state.Err == nil ||
		!strings.Contains(state.Err.Error(), "has not read what it is to keep") {
		t.Errorf("it is ready: %+v", state)
	}
	logs.mute.Store(false)
	logs.fail(nil) // it only wakes the readers
	testkit.Eventually(t, 30*time.Second, "it is ready", func() bool {
		return two.States()[0].AtEnd
	})
	awaitKept(t, one, "both keep all", allBy(4, 2))
}

// A process that is cut off from the keepers, and not from the log, keeps their shards itself.
func TestAProcessThatReachesNoKeeperKeepsTheShardsItself(t *testing.T) {
	logs, net := newFakeLogs(4), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, "")
	two := sharer(t, logs, net, "two", Keepers{Keep: true}, "")
	for _, s := range []*Store{one, two} {
		if err := s.Await(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
	}
	awaitKept(t, one, "the shards are shared out", func(by map[int][]string) bool {
		has := map[string]bool{}
		for _, names := range by {
			has[names[0]] = true
		}
		return allBy(4, 1)(by) && len(has) == 2
	})
	net.befall(func(string, string) journey { return journey{lost: true} })
	mustClaimAll(t, one, 1, 40)
	mustClaimAll(t, two, 1, 40)
	net.befall(nil)
	awaitKept(t, one, "each has its part again", allBy(4, 1))
	mustClaimAll(t, two, 2, 40)
}

func (n *fakeNet) befall(befalls func(from, to string) journey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.befalls = befalls
}

// With two copies the loss of a keeper is no outage: nobody has to read anything first.
func TestASecondCopyAnswersAtOnce(t *testing.T) {
	logs, net := newFakeLogs(4), newFakeNet()
	lanes := sharer(t, logs, net, "lanes", Keepers{Copies: 2}, "")
	one := sharer(t, logs, net, "one", Keepers{Keep: true, Copies: 2}, "")
	two := sharer(t, logs, net, "two", Keepers{Keep: true, Copies: 2}, "")
	for _, s := range []*Store{one, two, lanes} {
		if err := s.Await(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
	}
	awaitKept(t, lanes, "both keep all", allBy(4, 2))
	net.befall(func(_, to string) journey { // silence, as of a process that is stopped
		return journey{late: time.Duration(len(to)-3) * time.Hour, lost: to == "two"}
	})
	began := time.Now()
	mustClaimAll(t, lanes, 1, 40)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	net.befall(nil)
}

// An answer of a process that has taken the address of the one that is meant is none, nor is one
// about another log.
func TestAnAnswerOfAnotherProcessOrLogIsNone(t *testing.T) {
	logs, net := newFakeLogs(1), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, "")
	mustClaim(t, one, claimOf("a", 1))
	shared := one.logs[testScope.ConsumerGroup].(*sharing)
	q := shared.request(opLookup, testScope)
	q.keeper, q.limit = one.process, time.Minute
	q.sections = []section{{shard: 0, claims: []dedup.Claim{{ID: "a"}}}}
	ask := func(q request) (*reply, error) {
		return parseReply(one.answer(t.Context(), q.append(nil)), &q)
	}
	a, err := ask(q)
	if err != nil {
		t.Fatal(err)
	}
	wantOwner(t, a.sections[0].answers[0], dedup.Exists, 1)
	for name, spoil := range map[string]func(*request){
		"another process":   func(q *request) { q.keeper++ },
		"another log":       func(q *request) { q.log.log = "other" },
		"another agreement": func(q *request) { q.log.agreed++ },
		"another group":     func(q *request) { q.group = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			other := q
			spoil(&other)
			if _, err := ask(other); !errors.Is(err, errOtherOne) {
				t.Errorf("the keeper: %v", err)
			}
			if name == "another group" {
				return
			}
			data := one.answer(t.Context(), q.append(nil))
			if _, err := parseReply(data, &other); !errors.Is(err, errOtherOne) {
				t.Errorf("who asked: %v", err)
			}
		})
	}
	two := q
	two.sections = []section{{shard: 1, claims: q.sections[0].claims}}
	if _, err := parseReply(one.answer(t.Context(), q.append(nil)), &two); !errors.Is(err,
		errOtherOne) {
		t.Errorf("another shard: %v", err)
	}
}

func TestPlacesAreEvenAndStay(t *testing.T) {
	for range 300 {
		count, shards, copies := 1+rand.IntN(8), 1+rand.IntN(64), 1+rand.IntN(2)
		var members []Member
		for i := range count {
			members = append(members, Member{Process: rand.Uint64(), Instance: fmt.Sprint("p", i),
				Keeps: true})
		}
		before := place(members, shards, copies)
		has := make(map[uint64]int)
		for shard, of := range before {
			if len(of) != min(copies, count) || copies == 2 && count > 1 && of[0] == of[1] {
				t.Fatalf("shard %d has the keepers %v", shard, of)
			}
			for _, m := range of {
				has[m.Process]++
			}
		}
		most := (shards*min(copies, count)+count-1)/count + 1
		for _, n := range has {
			if n > most {
				t.Fatalf("one of %d members keeps %d of %d shards", count, n, shards)
			}
		}
		rand.Shuffle(count, func(i, j int) { members[i], members[j] = members[j], members[i] })
		for i := range members { // restarts change nothing
			members[i].Process = rand.Uint64()
		}
		for shard, of := range place(members, shards, copies) {
			for i, m := range of {
				if m.Instance != before[shard][i].Instance {
					t.Fatalf("shard %d moved from %v to %v", shard, before[shard], of)
				}
			}
		}
	}
}

// The index of a shard knows nothing of the IDs of others: it would call all of them free.
func TestAKeeperRefusesIDsOfAShardThatItDoesNotRead(t *testing.T) {
	logs, net := newFakeLogs(2), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, "")
	mustClaimAll(t, one, 0, 20)
	shared := one.logs[testScope.ConsumerGroup].(*sharing)
	id := dedup.ID("a")
	other := 1 - shared.agreed.Key.shardOf(string(id), 2)
	before := len(logs.entries(testScope.ConsumerGroup)[1-other])
	for _, op := range []operation{opClaim, opImport, opLookup, opRelease, opFind} {
		q := shared.request(op, testScope)
		q.keeper, q.limit = one.process, time.Second
		ticket := shared.tickets.issue(time.Now())
		q.sections = []section{{shard: other, ticket: ticket, claims: []dedup.Claim{{ID: id}},
			lives: []life{{0, time.Now().Add(time.Hour).UnixMilli()}}}}
		a, err := parseReply(one.answer(t.Context(), q.append(nil)), &q)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.sections[0].status.err(a.sections[0].why); !errors.Is(err, errRemote) ||
			a.sections[0].answers[0].Outcome != dedup.Undecided {
			t.Errorf("operation %d: %+v (%v)", op, a.sections[0], err)
		}
	}
	if now := len(logs.entries(testScope.ConsumerGroup)[1-other]); now != before {
		t.Errorf("%d blocks were written", now-before)
	}
}
