package claimlog

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
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
		sight := sight{Position{Next: seen}, now}
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
