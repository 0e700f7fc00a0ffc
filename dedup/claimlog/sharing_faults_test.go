package claimlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// ledger notes who won which ID: nobody else may, in whatever process, and through whomever.
type ledger struct {
	mu      sync.Mutex
	owners  map[dedup.ID]dedup.Coordinates
	answers int
}

func (l *ledger) note(t *testing.T, id dedup.ID, owner dedup.Coordinates) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers++
	if before, known := l.owners[id]; known && before != owner {
		t.Errorf("%q is owned by the record at %d, and then at %d", id, before.Offset, owner.Offset)
	}
	l.owners[id] = owner
}

// Processes with keepers, and one of an earlier version, claim the same few hundred IDs while
// messages between them are lost, late and doubled, answers are lost, appends fail or stand all the
// same, processes come, go and are cut off, and shards move in the middle of calls. Everybody is
// told one owner of each ID.
func TestKeepersTellOneOwnerWhateverBefallsTheirMessages(t *testing.T) {
	for _, copies := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d copies", copies), func(t *testing.T) {
			logs, net := newFakeLogs(6), newFakeNet()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			l := &ledger{owners: make(map[dedup.ID]dedup.Coordinates)}
			var lanes sync.WaitGroup
			claim := func(ctx context.Context, s *Store) {
				lanes.Go(func() { claimAtRandom(ctx, t, s, l) })
			}
			claim(ctx, open(t, Options{Opener: logs, Wait: time.Second})) // keeps all
			for i := range 3 {
				s := faulty(t, logs, net, fmt.Sprint("stays", i), copies)
				t.Cleanup(func() { s.Close() })
				claim(ctx, s)
			}
			net.befall(func(string, string) (j journey) {
				switch rand.IntN(12) {
				case 0:
					j.lost = true
				case 1:
					j.answerLost = true
				case 2:
					j.doubled = true
				case 3:
					j.late = time.Duration(rand.IntN(60)) * time.Millisecond
				}
				return j
			})
			logs.befall(func() fate {
				if rand.IntN(8) > 0 {
					return stands
				}
				return fate(rand.IntN(3))
			})
			for i := 0; ctx.Err() == nil; i++ { // others come and go
				s := faulty(t, logs, net, fmt.Sprint("comes", i%2), copies)
				life, end := context.WithTimeout(ctx,
					time.Duration(100+rand.IntN(400))*time.Millisecond)
				var lane sync.WaitGroup
				lane.Go(func() { claimAtRandom(life, t, s, l) })
				lane.Wait()
				end()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			lanes.Wait()
			if len(l.owners) < 200 || l.answers < 2000 {
				t.Errorf("only %d answers about %d IDs", l.answers, len(l.owners))
			}
			net.befall(nil)
			logs.befall(nil)
			agreeAtTheEnd(t, logs, l)
		})
	}
}

// befall decides about all appends from now on.
func (f *fakeLogs) befall(appended func() fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.appended = appended
}

func faulty(t *testing.T, logs *fakeLogs, net *fakeNet, name string, copies int) *Store {
	t.Helper()
	o := Keepers{Instance: name, Address: name, Keep: true, Copies: copies, Network: net.node(name),
		times: quickSharing}
	return Open(Options{Opener: logs, Keepers: &o, Wait: time.Second, times: quick,
		now: func() time.Time { return logs.now() }})
}

func claimAtRandom(ctx context.Context, t *testing.T, s *Store, l *ledger) {
	for ctx.Err() == nil {
		claims := make([]dedup.Claim, 0, 30)
		for _, i := range rand.Perm(400)[:1+rand.IntN(30)] {
			claims = append(claims, claimOf(fmt.Sprint("id", i), rand.Int64N(1<<40)))
		}
		answers, _ := s.Claim(ctx, testScope, claims)
		for i, a := range answers {
			if a.Outcome != dedup.Undecided {
				l.note(t, claims[i].ID, a.Owner)
			}
		}
		if id := claims[0].ID; rand.IntN(4) == 0 {
			if a, err := s.Lookup(ctx, testScope, id); err == nil && a.Outcome == dedup.Exists {
				l.note(t, id, a.Owner)
			}
		}
	}
}

// agreeAtTheEnd has the whole log read by one that knows nothing of keepers.
func agreeAtTheEnd(t *testing.T, logs *fakeLogs, l *ledger) {
	t.Helper()
	s := open(t, Options{Opener: logs, Wait: 20 * time.Second})
	for id := range l.owners {
		a, err := s.Lookup(t.Context(), testScope, id)
		if err != nil {
			t.Fatal(err)
		}
		l.note(t, id, a.Owner)
	}
}

// A process that ends is asked no more: two answers in turn, that it keeps a shard and that it
// keeps none, would have each of the others ask again at once for as long as it takes to end.
func TestAProcessThatEndsSaysSo(t *testing.T) {
	logs, net := newFakeLogs(2), newFakeNet()
	one := sharer(t, logs, net, "one", Keepers{Keep: true}, "")
	two := sharer(t, logs, net, "two", Keepers{Keep: true}, "")
	for _, s := range []*Store{one, two} {
		if err := s.Await(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
	}
	awaitKept(t, one, "each keeps one shard", func(by map[int][]string) bool {
		return allBy(2, 1)(by) && by[0][0] != by[1][0]
	})
	two.mu.Lock()
	ending := two.logs[testScope.ConsumerGroup].(*sharing)
	two.mu.Unlock()
	ending.stop() // it closes its indexes next, and answers meanwhile
	for _, known := range [][]section{nil, {{shard: 0}}, {{shard: 1}}} {
		q := &request{op: opKept, group: testScope.ConsumerGroup, log: ending.identity(),
			keeper: two.process, limit: time.Minute, sections: known}
		if _, err := parseReply(ending.answer(t.Context(), q), q); !errors.Is(err, errRemote) {
			t.Errorf("asked by one that knows %v: %v", known, err)
		}
	}
	awaitKept(t, one, "the other keeps all", func(by map[int][]string) bool {
		return allBy(2, 1)(by) && by[0][0] == "one" && by[1][0] == "one"
	})
}
