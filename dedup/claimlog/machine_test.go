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

// A clock that falls back hides how late a block is: after the block's claimant has read, or before
// the log's time has risen again. One process has forgotten a claim that ended in between, another
// has not. The block must claim nothing, or they would disagree from then on about who owns the ID.
func TestABlockIsLateOnceTheTimeHasRisenSinceWhateverItFellBackBy(t *testing.T) {
	const minute = int64(time.Minute / time.Millisecond)
	block := func(at, seen, seenAt, now int64, id string, owner int64) Entry {
		h := head{version: version, written: now, log: 1, id: blockID{1, uint64(at)},
			scope: testScope.Name}
		return Entry{At: at, Time: now, Block: claimsBlock(nil, h, time.Minute,
			sight{Position{Next: seen}, seenAt, 0}, []dedup.Claim{claimOf(id, owner)}, places(1))}
	}
	for name, lives := range map[string]struct{ before, after []Entry }{
		"the time falls back behind what is forgotten": {
			before: []Entry{
				block(0, 0, 0, 10*minute, "first", 1),
				block(1, 1, 10*minute, 10*minute, "a", 2), // owns the ID until 11 minutes
				block(2, 2, 10*minute, 15*minute, "b", 3),
				block(3, 3, 15*minute, 22*minute, "c", 4),
			},
			after: []Entry{
				block(4, 4, 10*minute+minute/2, 10*minute+minute/2, "d", 5),
				block(5, 1, 10*minute, 10*minute+minute/2, "a", 6),
			},
		},
		"the time was ahead when its claimant read": {
			before: []Entry{
				block(0, 0, 0, 31*minute, "first", 1),
				block(1, 1, 31*minute, 10*minute, "b", 2),
				block(2, 2, 10*minute, 11*minute, "a", 3), // owns the ID until 12 minutes
				block(3, 3, 11*minute, 15*minute, "c", 4),
				block(4, 4, 15*minute, 23*minute, "d", 5),
			},
			after: []Entry{block(5, 1, 31*minute, 23*minute, "a", 6)},
		},
	} {
		for process, forgets := range map[string]bool{"forgot": true, "remembers": false} {
			m := newTestMachine(t)
			for _, e := range lives.before {
				applyTo(t, m, e)
			}
			if forgets {
				p := m.progress()
				if err := m.index.drop(t.Context(), p.ended(m.late)); err != nil {
					t.Fatal(err)
				}
			}
			var told []dedup.Answer
			for _, e := range lives.after {
				told = applyTo(t, m, e)
			}
			if len(told) > 0 {
				t.Errorf("%s: the process that %s tells %+v", name, process, told)
			}
		}
	}
}

// The time goes back, so a claim holds again that had ended for a claimant which had read less. Who
// has read more renews it, behind the block of the other.
func TestARenewalDoesNotTakeTheIDFromAClaimThatCameSince(t *testing.T) {
	const minute = int64(time.Minute / time.Millisecond)
	m := newTestMachine(t)
	claims := func(at, seen, seenAt, now int64, id string, owner int64) []dedup.Answer {
		h := head{version: version, written: now, log: 1, id: blockID{1, uint64(at)},
			scope: testScope.Name}
		return applyTo(t, m, Entry{At: at, Time: now, Block: claimsBlock(nil, h, 2*time.Minute,
			sight{Position{Next: seen}, seenAt, 0}, []dedup.Claim{claimOf(id, owner)}, places(1))})
	}
	claims(0, 0, 0, 17*minute, "first", 1)
	claims(1, 1, 17*minute, 17*minute, "a", 2) // until 19 minutes
	claims(2, 2, 17*minute, 20*minute, "b", 3)
	claims(3, 3, 20*minute, 16*minute, "c", 4) // the time goes back
	if told := claims(4, 3, 20*minute, 17*minute, "a", 5); len(told) != 1 ||
		told[0].Owner.Offset != 5 {
		t.Fatalf("the claim is told %+v", told)
	}
	h := head{version: version, written: 17 * minute, log: 1, id: blockID{1, 5},
		scope: testScope.Name}
	told := applyTo(t, m, Entry{At: 5, Time: 17 * minute, Block: renewalBlock(h, time.Minute,
		sight{Position{Next: 4}, 16 * minute, 0}, []dedup.Claim{claimOf("a", 2)},
		[]life{{claimed: 17 * minute, ends: 19 * minute}}, places(1))})
	if len(told) > 0 {
		t.Errorf("the renewal is told %+v", told)
	}
	a, err := m.lookup(0, testScope.Name, "a", 17*minute)
	if err != nil || a.Owner.Offset != 5 {
		t.Errorf("the owner is %+v, %v; 5 was told that it is", a, err)
	}
}

func newTestMachine(t *testing.T) *machine {
	t.Helper()
	m, err := newMachine(newMemoryIndex(), "log", agreement{Version: agreementVersion, ID: 1,
		Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	m.shards[0].Epoch, m.ahead[0].Epoch = 0, 0
	return m
}

// applyTo returns what is told.
func applyTo(t *testing.T, m *machine, e Entry) (told []dedup.Answer) {
	t.Helper()
	if err := m.apply(t.Context(), e, func(blockID) func(int, dedup.Answer) {
		return func(_ int, a dedup.Answer) { told = append(told, a) }
	}); err != nil {
		t.Fatal(err)
	}
	return told
}
