package claimlog

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
	"github.com/kdedup/kdedup/internal/testkit"
)

// After a kill the index has what blocks behind the saved progress did, and these come once more.
// The first of them then meets the claims of the last one.
func TestBlocksThatAreAppliedOnceMoreDecideAsBefore(t *testing.T) {
	claims := func(at, seen, now int64, ttl time.Duration, owners ...int64) Entry {
		var all []dedup.Claim
		for _, offset := range owners {
			all = append(all, claimOf("a", offset))
		}
		h := head{log: 1, id: blockID{1, uint64(at)}, scope: testScope.Name}
		sight := sight{Position{Next: seen}, now, 0}
		return Entry{At: at, Time: now, Block: claimsBlock(nil, h, ttl, sight, all,
			places(len(all)))}
	}
	saved := claims(0, 0, 1000, time.Second)
	later := []Entry{
		claims(1, 0, 1000, time.Second, 1), // owns the ID for a second
		claims(2, 1, 1500, time.Hour, 2),   // is a copy of it
		claims(3, 2, 3000, time.Hour, 3),   // owns the ID again
	}
	dir := t.TempDir()
	for _, life := range []string{"first", "second"} {
		files, err := openFiles(dir, quietLog)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMachine(files, "log", agreement{ID: 1, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		apply := func(e Entry) {
			t.Helper()
			if err := m.apply(t.Context(), e, func(blockID) func(int, dedup.Answer) {
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if life == "first" {
			m.shards[0].Epoch, m.ahead[0].Epoch = 0, 0
			apply(saved)
			if err := files.save(t.Context(), files.mark(), m.progress()); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range later {
			apply(e)
		}
		answer, err := m.lookup(0, testScope.Name, "a", 0)
		if err != nil || answer.Owner.Offset != 3 {
			t.Errorf("in the %s life the owner is %+v, %v", life, answer, err)
		}
		if err := files.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A claim is put over one that ends later, which the claimant did not know. When it has ended, and
// its segment of the index is dropped, the old owner must not be back with whoever has files.
func TestAnOwnerThatWasReplacedDoesNotComeBack(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	block := func(at, seen, now int64, ttl time.Duration, id string, owner int64) Entry {
		h := head{log: 1, id: blockID{1, uint64(at)}, scope: testScope.Name}
		read := sight{Position{Next: seen}, now, 0}
		return Entry{At: at, Time: now, Block: claimsBlock(nil, h, ttl, read,
			[]dedup.Claim{claimOf(id, owner)}, places(1))}
	}
	// A segment for each block, where 32 MiB of claims make one otherwise.
	files, err := openFilesOf(t.TempDir(), quietLog, hashlog.Options{SegmentBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer files.close()
	machineOf := func(x index, first int64) *machine {
		m, err := newMachine(x, "log", agreement{ID: 1, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		m.shards[0].Position, m.ahead[0] = Position{Next: first}, Position{Next: first}
		return m
	}
	old, fresh := machineOf(files, 0), machineOf(newMemoryIndex(), 1)
	apply := func(m *machine, e Entry) {
		none := func(blockID) func(int, dedup.Answer) { return nil }
		if err := m.apply(t.Context(), e, none); err != nil {
			t.Fatal(err)
		}
	}
	apply(old, block(0, 0, hour, 13*time.Hour, "a", 1)) // by now the log begins behind it
	later := []Entry{
		block(1, 1, 4*hour, time.Hour, "z", 8),
		block(2, 2, 4*hour, time.Hour, "a", 3), // of the fresh one, which finds the ID free
		block(3, 3, 6*hour, time.Hour, "y", 9), // that claim has ended
		block(4, 4, 6*hour, time.Hour, "x", 9),
	}
	for _, e := range later {
		apply(old, e)
		apply(fresh, e)
	}
	owners := func(when string) {
		for name, m := range map[string]*machine{"with files": old, "without": fresh} {
			a, err := m.lookup(0, testScope.Name, "a", 0)
			if err != nil {
				t.Fatal(err)
			}
			if a.Outcome != dedup.Undecided {
				t.Errorf("%s the drop, %s: a is owned by %d until 13 h, and its claim ended at 5 h", when,
					name, a.Owner.Offset)
			}
		}
	}
	owners("before")
	segments := files.claims.Stats().Segments
	testkit.Eventually(t, 30*time.Second, "what has ended goes", func() bool {
		if err := files.drop(t.Context(), 6*hour); err != nil {
			t.Fatal(err)
		}
		return files.claims.Stats().Segments < segments // once they have an index
	})
	owners("behind")
}

// A broker's clock that falls back by as much as a block is late hides that it is late. One process
// has forgotten a claim that ended in between, another has not. The block must claim nothing, or
// they would disagree from then on about who owns the ID.
func TestABlockIsAsLateAsTheTimeWasThatTheLogWentBackFrom(t *testing.T) {
	const minute = int64(time.Minute / time.Millisecond)
	block := func(at, seen, seenAt, now int64, id string, owner int64) Entry {
		h := head{version: version, written: now, log: 1, id: blockID{1, uint64(at)},
			scope: testScope.Name}
		return Entry{At: at, Time: now, Block: claimsBlock(nil, h, time.Minute,
			sight{Position{Next: seen}, seenAt, 0}, []dedup.Claim{claimOf(id, owner)}, places(1))}
	}
	answers := make(map[string][]dedup.Answer)
	for name, forgets := range map[string]bool{"forgot": true, "remembers": false} {
		m, err := newMachine(newMemoryIndex(), "log", agreement{Version: agreementVersion, ID: 1,
			Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		m.shards[0].Epoch, m.ahead[0].Epoch = 0, 0
		apply := func(e Entry) {
			t.Helper()
			told := func(claim int, a dedup.Answer) { answers[name] = append(answers[name], a) }
			if err := m.apply(t.Context(), e, func(blockID) func(int, dedup.Answer) {
				return told
			}); err != nil {
				t.Fatal(err)
			}
		}
		apply(block(0, 0, 0, 10*minute, "first", 1))
		apply(block(1, 1, 10*minute, 10*minute, "a", 2)) // owns the ID until 11 minutes
		apply(block(2, 2, 10*minute, 15*minute, "b", 3))
		apply(block(3, 3, 15*minute, 22*minute, "c", 4))
		if forgets {
			p := m.progress()
			if err := m.index.drop(t.Context(), p.ended(m.late)); err != nil {
				t.Fatal(err)
			}
		}
		// The clock falls back, and a block comes whose claimant has read nothing of the above.
		apply(block(4, 4, 10*minute+minute/2, 10*minute+minute/2, "d", 5))
		answers[name] = nil
		apply(block(5, 1, 10*minute, 10*minute+minute/2, "a", 6))
		if len(answers[name]) > 0 {
			t.Errorf("the process that %s tells %+v", name, answers[name])
		}
	}
}
