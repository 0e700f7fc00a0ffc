package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/storetest"
	"github.com/kdedup/kdedup/internal/hashlog"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Where the process of a killed owner finds its store.
const pathEnv = "KDEDUP_TEST_OWNER_PATH"

func TestMain(m *testing.M) {
	storetest.OwnerProcess(func() (idempotency.Store, error) {
		return Open(Options{Path: os.Getenv(pathEnv)})
	})
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
	storetest.Run(t, func(t *testing.T) idempotency.Store { return openFor(t, t.TempDir()) },
		storetest.Features{
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
	if _, err := Open(Options{Path: path}); err == nil ||
		!strings.Contains(err.Error(), "one store per directory") {
		t.Errorf("got %v", err)
	}
}

// clock is set by hand.
type clock struct{ unix atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1_800_000_000+c.unix.Load(), 0) }

// elapsed is for a clock that is not set, but goes on.
func (c *clock) elapsed() time.Duration { return time.Duration(c.unix.Load()) * time.Second }

func (c *clock) open(t *testing.T, o Options) *Store {
	t.Helper()
	o.now, o.elapsed, o.segmentBytes = c.now, c.elapsed, 1<<10
	store, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// put swaps a revision for the next one.
func put(t *testing.T, store *Store, id string, old int64, ttl time.Duration) {
	t.Helper()
	record := idempotency.Record{Version: idempotency.Version{Revision: old + 1},
		State: idempotency.Started}
	_, done, err := store.Swap(t.Context(), idempotency.Key{ID: id},
		idempotency.Version{Revision: old}, record, ttl)
	if err != nil || !done {
		t.Fatal(err, done)
	}
}

func wantRevision(t *testing.T, store *Store, id string, want int64) {
	t.Helper()
	if got, err := store.Get(t.Context(), idempotency.Key{ID: id}); err != nil ||
		got.Revision != want {
		t.Errorf("%s has revision %d, %v; want %d", id, got.Revision, err, want)
	}
}

// The files of what has expired go, and the answers stay the same: a record that replaced one that
// was to live longer does not bring it back.
func TestTheSweepDeletesWhatHasExpiredAndNothingElse(t *testing.T) {
	var c clock
	store := c.open(t, Options{Path: t.TempDir(), SweepInterval: -1})
	defer mustClose(t, store)
	c.unix.Add(25 * 3600)
	if _, err := store.sweep(t.Context()); err != nil { // the clock has stood by its time for a day
		t.Fatal(err)
	}
	put(t, store, "shortened", 0, 3*time.Hour)
	put(t, store, "renewed", 0, time.Minute)
	put(t, store, "renewed", 1, 2*time.Hour)
	for n := range 100 {
		put(t, store, fmt.Sprint("brief", n), 0, time.Minute)
	}
	put(t, store, "shortened", 1, time.Minute)
	check := func(renewed, segments int) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, "files of what has expired to go", func() bool {
			if _, err := store.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			return store.records.Stats().Segments == segments
		})
		wantRevision(t, store, "renewed", int64(renewed))
		for _, gone := range []string{"shortened", "brief0", "brief99"} {
			wantRevision(t, store, gone, 0)
		}
	}
	wantRevision(t, store, "shortened", 2)
	c.unix.Add(119 * 60)
	check(2, 2) // the first, and an empty one
	c.unix.Add(3 * 3600)
	check(0, 1)
}

func TestTheSweepRunsByItself(t *testing.T) {
	var c clock
	store := c.open(t, Options{Path: t.TempDir(), SweepInterval: 10 * time.Millisecond})
	defer mustClose(t, store)
	for n := range 50 {
		put(t, store, fmt.Sprint(n), 0, time.Minute)
	}
	c.unix.Add(3600)
	testkit.Eventually(t, 30*time.Second, "one empty file", func() bool {
		return store.records.Stats().Segments == 1
	})
}

// A clock that is wrong for hours deletes nothing for good, and ends nothing early.
func TestAWrongClockForgetsNothingForGood(t *testing.T) {
	for name, wrong := range map[string]int64{"ahead": 400 * 24 * 3600,
		"behind": -400 * 24 * 3600} {
		t.Run(name, func(t *testing.T) {
			var right, error clock
			now := func() time.Time { return right.now().Add(error.elapsed()) }
			store, err := Open(Options{Path: t.TempDir(), SweepInterval: -1, now: now,
				elapsed: right.elapsed, segmentBytes: 1 << 10})
			if err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, store)
			run := func(hours int) {
				for range 6 * hours {
					right.unix.Add(600)
					if _, err := store.sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			put(t, store, "before", 0, 72*time.Hour)
			run(25)
			error.unix.Store(wrong)
			run(6)
			put(t, store, "meanwhile", 0, 72*time.Hour)
			run(6)
			error.unix.Store(0)
			run(1)
			wantRevision(t, store, "before", 1)
			wantRevision(t, store, "meanwhile", 1)
		})
	}
}

func TestDamagedRecordsAreErrors(t *testing.T) {
	store := mustOpen(t, t.TempDir())
	defer mustClose(t, store)
	key := idempotency.Key{ID: "1"}
	for _, value := range []string{"short", "long enough for the end but not for a record"} {
		var b hashlog.Batch
		b.Put(recordKey(key), []byte(value), 1<<50)
		if _, err := store.records.Append(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(t.Context(), key); !errors.Is(err, idempotency.ErrRecord) {
			t.Errorf("%q: get: %v", value, err)
		}
		if _, done, err := store.Swap(
			t.Context(), key, idempotency.Version{}, idempotency.Record{}, time.Hour,
		); done || !errors.Is(err, idempotency.ErrRecord) {
			t.Errorf("%q: swap: %v", value, err)
		}
	}
}

func TestARecordThatIsTooLongIsRefused(t *testing.T) {
	store := mustOpen(t, t.TempDir())
	defer mustClose(t, store)
	key := idempotency.Key{ID: "1"}
	record := idempotency.Record{Version: idempotency.Version{Revision: 1},
		State: idempotency.Completed, Response: make([]byte, hashlog.MaxLength)}
	if _, done, err := store.Swap(
		t.Context(), key, idempotency.Version{}, record, time.Hour,
	); done || err == nil || !strings.Contains(err.Error(), "lower MaxResponse") {
		t.Errorf("got %t, %v", done, err)
	}
	put(t, store, "1", 0, time.Hour)
}

// Nobody is told what a disk did not take, and the error says what to do.
func TestNoSwapIsAnsweredThatAFullDiskDidNotTake(t *testing.T) {
	d, path := testkit.NewDisk(), t.TempDir()
	store, err := Open(Options{Path: path, SweepInterval: -1, disk: d})
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "1", 0, time.Hour)
	d.Full.Store(true)
	next := idempotency.Record{Version: idempotency.Version{Revision: 2},
		State: idempotency.Started}
	_, done, err := store.Swap(t.Context(), idempotency.Key{ID: "1"},
		idempotency.Version{Revision: 1}, next, time.Hour)
	if done || err == nil || !strings.Contains(err.Error(),
		"make room or replace the disk, then restart") {
		t.Errorf("got %t, %v", done, err)
	}
	if _, err := store.Get(t.Context(), idempotency.Key{ID: "1"}); err == nil {
		t.Error("a broken store answers")
	}
	if store.Close() == nil {
		t.Error("it was closed as if nothing had happened")
	}
	store = mustOpen(t, path)
	defer mustClose(t, store)
	wantRevision(t, store, "1", 1)
}

func TestADirectoryOfPebbleIsRefused(t *testing.T) {
	for _, name := range []string{"MANIFEST-000001", "OPTIONS-000003",
		"marker.format-version.000001.024", "000005.sst"} {
		path := t.TempDir()
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Path: path}); err == nil ||
			!strings.Contains(err.Error(), name+" is of a Pebble database") {
			t.Errorf("got %v", err)
		}
	}
}

func TestAStoreWithoutItsRecordsIsRefused(t *testing.T) {
	path := t.TempDir()
	mustClose(t, mustOpen(t, path))
	if err := os.RemoveAll(filepath.Join(path, "records")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: path}); err == nil ||
		!strings.Contains(err.Error(), "the records are missing; bring them back") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyTheUserCanReadTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	store := mustOpen(t, path)
	put(t, store, "1", 0, time.Hour)
	mustClose(t, store)
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
