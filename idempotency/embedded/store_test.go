package embedded

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Where the process of a killed owner finds its store.
const pathEnv = "KDEDUP_TEST_OWNER_PATH"

func TestMain(m *testing.M) {
	storetest.OwnerProcess(func() (idempotency.Store, error) { return Open(Options{Path: os.Getenv(pathEnv)}) })
	goleak.VerifyTestMain(m)
}

func mustOpen(t *testing.T, path string) *Store {
	t.Helper()
	store, err := Open(Options{Path: path, SweepInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func mustClose(t *testing.T, store *Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) idempotency.Store { return openFor(t, t.TempDir()) }, storetest.Features{
		ExpiryGranularity: time.Millisecond,
		Reopen: func(t *testing.T, store idempotency.Store) idempotency.Store {
			closing := store.(*closing)
			closing.close(t)
			return openFor(t, closing.path)
		},
	})
}

// The files are for one process, so this one opens them when the other is dead.
func TestAKilledOwnerIsTakenOver(t *testing.T) {
	path := t.TempDir()
	storetest.KilledOwner(t, func(t *testing.T) idempotency.Store { return openFor(t, path) },
		storetest.Owner{Env: []string{pathEnv + "=" + path}, Exclusive: true})
}

// closing is a store that is closed once, by the test or after it.
type closing struct {
	*Store
	path   string
	closed bool
}

func openFor(t *testing.T, path string) *closing {
	t.Helper()
	c := &closing{Store: mustOpen(t, path), path: path}
	t.Cleanup(func() { c.close(t) })
	return c
}

func (c *closing) close(t *testing.T) {
	t.Helper()
	if !c.closed {
		c.closed = true
		mustClose(t, c.Store)
	}
}

func TestASecondStoreOfADirectoryIsRefusedWithTheRemedy(t *testing.T) {
	path := t.TempDir()
	store := mustOpen(t, path)
	defer mustClose(t, store)
	if _, err := Open(Options{Path: path}); err == nil || !strings.Contains(err.Error(), "one store per directory") {
		t.Errorf("got %v", err)
	}
}

// A record that was renewed has several entries for the sweep, of which only the last counts.
func TestTheSweepDeletesWhatHasExpiredAndNothingElse(t *testing.T) {
	store := mustOpen(t, t.TempDir())
	defer mustClose(t, store)
	put := func(id string, old, revision int64, ttl time.Duration) {
		t.Helper()
		record := idempotency.Record{Version: idempotency.Version{Revision: revision}, State: idempotency.Started}
		_, done, err := store.Swap(t.Context(), idempotency.Key{ID: id}, idempotency.Version{Revision: old}, record, ttl)
		if err != nil || !done {
			t.Fatal(err, done)
		}
	}
	for n := range 100 {
		put(fmt.Sprint("brief", n), 0, 1, time.Minute)
	}
	put("renewed", 0, 1, time.Minute)
	put("renewed", 1, 2, time.Hour)
	for _, row := range []struct {
		after         time.Duration
		deleted, left int
	}{{0, 0, 203}, {2 * time.Minute, 100, 2}, {2 * time.Minute, 0, 2}, {2 * time.Hour, 1, 0}} {
		deleted, err := store.sweep(t.Context(), time.Now().Add(row.after))
		if left := entries(t, store); err != nil || deleted != row.deleted || left != row.left {
			t.Errorf("after %v: %d deleted, %d left, %v; want %d and %d", row.after, deleted, left, err, row.deleted, row.left)
		}
	}
}

// entries counts records, and the ends by which the sweep finds them.
func entries(t *testing.T, store *Store) (n int) {
	t.Helper()
	iter, err := store.db.NewIter(&pebble.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for iter.First(); iter.Valid(); iter.Next() {
		if iter.Key()[0] == endPrefix || iter.Key()[0] == recordPrefix {
			n++
		}
	}
	if err := iter.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheSweepRunsByItself(t *testing.T) {
	store, err := Open(Options{Path: t.TempDir(), SweepInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, store)
	record := idempotency.Record{Version: idempotency.Version{Revision: 1}, State: idempotency.Started}
	if _, _, err := store.Swap(t.Context(), idempotency.Key{ID: "1"}, idempotency.Version{}, record, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, "an empty database", func() bool { return entries(t, store) == 0 })
}

func TestDamagedRecordsAreErrors(t *testing.T) {
	store := mustOpen(t, t.TempDir())
	defer mustClose(t, store)
	key := idempotency.Key{ID: "1"}
	for _, value := range []string{"", "short", "long enough for the end but not for a record"} {
		if err := store.db.Set(recordKey(key), []byte(value), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(t.Context(), key); !errors.Is(err, idempotency.ErrRecord) {
			t.Errorf("%q: get: %v", value, err)
		}
		if _, done, err := store.Swap(t.Context(), key, idempotency.Version{}, idempotency.Record{}, time.Hour); done || !errors.Is(err, idempotency.ErrRecord) {
			t.Errorf("%q: swap: %v", value, err)
		}
	}
}
