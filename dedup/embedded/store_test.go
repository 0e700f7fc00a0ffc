package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(claimerEnv); path != "" {
		claimForever(path)
	}
	goleak.VerifyTestMain(m)
}

func mustOpen(t testing.TB, o Options) *Store {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) dedup.Store {
		s := &reopened{Store: mustOpen(t, Options{Path: t.TempDir()})}
		t.Cleanup(func() { _ = s.Store.Close() })
		return s
	}, storetest.Features{
		ExpiryGranularity: 100 * time.Millisecond,
		Reopen: func(t *testing.T, store dedup.Store) dedup.Store {
			s := store.(*reopened)
			path := s.path()
			if err := s.Store.Close(); err != nil {
				t.Fatal(err)
			}
			s.Store = mustOpen(t, Options{Path: path})
			return s
		},
		Ambiguous: func(_ *testing.T, store dedup.Store) { store.(*reopened).loseNext = true },
	})
}

// reopened is a store that can be closed and opened in place, and that loses an answer on request.
type reopened struct {
	*Store
	loseNext bool
}

func (r *reopened) path() string { return r.Store.path }

func (r *reopened) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers, err := r.Store.Claim(ctx, scope, claims)
	if r.loseNext {
		r.loseNext = false
		return make([]dedup.Answer, len(claims)), errors.New("lost")
	}
	return answers, err
}

var scope = dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 16,
	Extractor: "key"}

func claims(from, n int) []dedup.Claim {
	list := make([]dedup.Claim, n)
	for i := range list {
		list[i] = dedup.Claim{ID: dedup.ID(fmt.Sprintf("id-%08d", from+i)),
			Owner: dedup.Coordinates{Offset: int64(from + i)}}
	}
	return list
}

func mustClaim(t *testing.T, s *Store, list []dedup.Claim) []dedup.Answer {
	t.Helper()
	answers, err := s.Claim(t.Context(), scope, list)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// A claim comes between no other call's look-up and what that writes.
func TestAClaimWaitsForACallAboutItsID(t *testing.T) {
	s := mustOpen(t, Options{Path: t.TempDir(), SweepInterval: -1})
	defer s.Close()
	state, err := s.ensureScope(scope)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.decide(t.Context()); err != nil {
		t.Fatal(err)
	}
	claimed := make(chan error, 1)
	go func() {
		_, err := s.Claim(t.Context(), scope, claims(0, 1))
		claimed <- err
	}()
	select {
	case <-claimed:
		t.Fatal("it did not wait")
	case <-time.After(100 * time.Millisecond):
	}
	state.decided()
	if err := <-claimed; err != nil {
		t.Error(err)
	}
}

// dying ends at the second look at it.
type dying struct {
	context.Context
	looks atomic.Int64
}

func (d *dying) Err() error {
	if d.looks.Add(1) > 2 {
		return context.Canceled
	}
	return nil
}

func TestALongClaimEndsWithItsContext(t *testing.T) {
	s := mustOpen(t, Options{Path: t.TempDir(), SweepInterval: -1})
	defer s.Close()
	if _, err := s.Claim(&dying{Context: t.Context()}, scope, claims(0, 1000)); err == nil {
		t.Fatal("it went on to its end")
	}
	for _, a := range mustClaim(t, s, claims(0, 1000)) {
		if a.Outcome != dedup.Applied {
			t.Fatalf("a claim of a call that gave up stands: %+v", a)
		}
	}
}

// testdata/version1 was written by a version whose hashes could be foreseen: IDs 0 to 49 of one
// scope, of which 7 was released, and 0 to 2 of another.
func TestAStoreOfTheFirstVersionGoesOn(t *testing.T) {
	path := t.TempDir()
	if err := os.CopyFS(path, os.DirFS("testdata/version1")); err != nil {
		t.Fatal(err)
	}
	other := scope
	other.Name = "other"
	for run := range 2 {
		s := mustOpen(t, Options{Path: path, SweepInterval: -1})
		if err := s.Register(t.Context(), scope); err != nil {
			t.Error(err)
		}
		for i, a := range mustClaim(t, s, claims(0, 60)) {
			if known := i != 7 && i < 50 || run > 0; (a.Outcome == dedup.Exists) != known ||
				a.Owner.Offset != int64(i) {
				t.Errorf("run %d, claim %d: %+v", run, i, a)
			}
		}
		if a, err := s.Lookup(t.Context(), other, claims(2, 1)[0].ID); err != nil ||
			a.Outcome != dedup.Exists {
			t.Errorf("of the other scope: %+v, %v", a, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASecondStoreOnADirectoryIsRefused(t *testing.T) {
	path := t.TempDir()
	first := mustOpen(t, Options{Path: path})
	defer first.Close()
	_, err := Open(Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
	want := "open embedded store " + path +
		": used by another process: one process per directory; to share a store, set store.type " +
		"to kafka, cassandra, redis or postgres"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestAPathThatIsAFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: path, Logger: slog.New(slog.DiscardHandler)}); err == nil ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestADirectoryOfAnotherDatabaseIsRefused(t *testing.T) {
	for _, row := range []struct{ file, want string }{
		{"MANIFEST-000001", "files of another database; name another directory, or empty this one"},
		{"claims-000001", "scopes.json is missing, and there are claims; bring it back"},
	} {
		path := t.TempDir()
		if err := os.WriteFile(filepath.Join(path, row.file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Path: path, Logger: slog.New(slog.DiscardHandler)}); err == nil ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v", row.file, err)
		}
		if err := os.Remove(filepath.Join(path, row.file)); err != nil {
			t.Fatal(err)
		}
		if err := mustOpen(t, Options{Path: path}).Close(); err != nil { // it is not locked
			t.Fatal(err)
		}
	}
}

// A scope whose files are gone would take all copies for new.
func TestAScopeWithoutItsFilesIsRefused(t *testing.T) {
	for name, remove := range map[string]func(claims string) error{
		"the directory": os.RemoveAll,
		"what is in it": func(claims string) error {
			return errors.Join(os.RemoveAll(claims), os.Mkdir(claims, 0o700))
		},
	} {
		path := t.TempDir()
		s := mustOpen(t, Options{Path: path, SweepInterval: -1})
		mustClaim(t, s, claims(0, 1))
		if err := errors.Join(s.Close(), remove(filepath.Join(path, "claims-000001"))); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(),
			"claims-000001: the claims of scope g/t are missing; bring them back") {
			t.Errorf("without %s: got %v", name, err)
		}
	}
}

func TestAForgottenScopeLeavesNoFiles(t *testing.T) {
	path := t.TempDir()
	s := mustOpen(t, Options{Path: path})
	defer s.Close()
	mustClaim(t, s, claims(0, 10))
	if err := s.Forget(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if names, err := filepath.Glob(filepath.Join(path, "claims-*")); err != nil || len(names) > 0 {
		t.Errorf("%v are left, %v", names, err)
	}
	if a := mustClaim(t, s, claims(0, 1))[0]; a.Outcome != dedup.Applied {
		t.Errorf("got %+v", a)
	}
}

// clock is set by hand.
type clock struct{ unix atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.unix.Load(), 0) }

// elapsed is for a clock that is not set, but goes on.
func (c *clock) elapsed() time.Duration { return time.Duration(c.unix.Load()) * time.Second }

// The files of the claims that have expired go, and the answers stay the same.
func TestTheSweepDeletesFilesOfExpiredClaimsAndNoOthers(t *testing.T) {
	var c clock
	c.unix.Store(1_000_000)
	s := mustOpen(t, Options{Path: t.TempDir(), SweepInterval: -1, Now: c.now, elapsed: c.elapsed})
	defer s.Close()
	mustClaim(t, s, claims(0, 5000))
	sweep := func(want int) {
		t.Helper()
		if got, err := s.sweep(t.Context()); err != nil || got != want {
			t.Fatalf("deleted %d files, %v; want %d", got, err, want)
		}
	}
	sweep(0)
	c.unix.Add(3601)
	testkit.Eventually(t, 20*time.Second, "the file of what has expired to go", func() bool {
		n, err := s.sweep(t.Context())
		return n == 1 && err == nil
	})
	mustClaim(t, s, claims(0, 100))
	sweep(0)
	for i, a := range mustClaim(t, s, claims(0, 10_000)) {
		if known := i < 100; (a.Outcome == dedup.Exists) != known {
			t.Fatalf("claim %d: %+v", i, a)
		}
	}
}

func TestTheSweeperRunsByItself(t *testing.T) {
	var c clock
	c.unix.Store(1_000_000)
	s := mustOpen(t, Options{Path: t.TempDir(), SweepInterval: time.Millisecond, Now: c.now,
		elapsed: c.elapsed})
	defer s.Close()
	mustClaim(t, s, claims(0, 1000))
	c.unix.Add(3601)
	testkit.Eventually(t, 20*time.Second, "the files of what has expired to go", func() bool {
		return s.stats()[0].Bytes < 1000
	})
}

// A full disk: claims that cannot be written are never answered as made, the error says what to do,
// and after a restart the answered ones stand.
func TestNoClaimIsAnsweredThatAFullDiskDidNotTake(t *testing.T) {
	d := testkit.NewDisk()
	path := t.TempDir()
	s := mustOpen(t, Options{Path: path, SweepInterval: -1, disk: d})
	var answered []dedup.Claim
	for i := range 50 {
		d.Full.Store(i >= 25)
		list := claims(i*100, 100)
		answers, err := s.Claim(t.Context(), scope, list)
		switch {
		case err == nil && i < 25:
			answered = append(answered, list...)
		case err == nil:
			t.Fatalf("batch %d was answered: %v", i, answers[0])
		case slices.ContainsFunc(answers, func(a dedup.Answer) bool {
			return a.Outcome != dedup.Undecided
		}):
			t.Fatalf("batch %d failed and has answers", i)
		case !strings.Contains(err.Error(), "make room or replace the disk, then restart"):
			t.Fatalf("got %v", err)
		}
	}
	if _, err := s.Lookup(t.Context(), scope, "id"); err == nil {
		t.Error("a broken store passes the readiness check")
	}
	if err := s.Close(); err == nil {
		t.Error("it was closed as if nothing had happened")
	}
	again := mustOpen(t, Options{Path: path, SweepInterval: -1})
	defer again.Close()
	for i, a := range mustClaim(t, again, answered) {
		if a.Outcome != dedup.Exists || a.Owner != answered[i].Owner {
			t.Fatalf("claim %d was forgotten: %+v", i, a)
		}
	}
}

// The advice of `kdedup report` multiplies RowBytes by millions.
func TestAClaimTakesAsMuchDiskAsIsAdvised(t *testing.T) {
	const n, step = 1_200_000, 20_000 // four segments
	s := mustOpen(t, Options{Path: t.TempDir(), SweepInterval: -1})
	defer s.Close()
	for from := 0; from < n; from += step {
		mustClaim(t, s, claims(from, step))
	}
	state := s.scopes[nameOf(scope)]
	want := float64(RowBytes(len(claims(0, 1)[0].ID)))
	testkit.Eventually(t, time.Minute, "indexes of all segments but the newest", func() bool {
		got := float64(state.claims.Stats().Bytes) / n
		return got > want*0.94 && got < want*1.03
	})
}

func BenchmarkClaim(b *testing.B) {
	const size = 5000
	for _, known := range []int{0, size / 10, size / 2} {
		b.Run(fmt.Sprintf("known=%d%%", known*100/size), func(b *testing.B) {
			s := mustOpen(b, Options{Path: b.TempDir(), SweepInterval: -1})
			defer s.Close()
			var next atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					from := int(next.Add(size))
					batch := append(claims(from, size-known),
						claims(max(0, from-20*size), known)...)
					if _, err := s.Claim(context.Background(), scope, batch); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)*size/b.Elapsed().Seconds(), "claims/s")
		})
	}
}
