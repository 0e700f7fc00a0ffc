package claimlog

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quietLog = slog.New(slog.DiscardHandler)

var quick = timing{retry: time.Millisecond, save: 5 * time.Millisecond, drop: 10 * time.Millisecond,
	settle: time.Hour, stuck: 30 * time.Second}

// open opens a store that its test may close before its end. Its machine has the clock of its log's
// brokers, unless it has its own.
func open(t *testing.T, o Options) *Store {
	t.Helper()
	o.times = quick
	if logs, is := o.Opener.(*fakeLogs); is && o.now == nil {
		o.now = func() time.Time { return logs.now() }
	}
	s := Open(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ownLogs is a store with logs of its own, which can lose the broker's answers to one call.
type ownLogs struct {
	*Store
	logs *fakeLogs
	lose atomic.Bool
}

func (o *ownLogs) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	if o.lose.Swap(false) {
		o.logs.becomes(unreported)
		defer o.logs.becomes(stands)
	}
	return o.Store.Claim(ctx, scope, claims)
}

// becomes decides about all appends from now on.
func (f *fakeLogs) becomes(what fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.appended = func() fate { return what }
}

func TestConformance(t *testing.T) {
	for name, files := range map[string]bool{"memory": false, "files": true} {
		t.Run(name, func(t *testing.T) {
			options := func(t *testing.T, logs *fakeLogs) Options {
				o := Options{Opener: logs, Wait: 20 * time.Second}
				if files {
					o.Path = t.TempDir()
				}
				return o
			}
			storetest.Run(t, func(t *testing.T) dedup.Store {
				logs := newFakeLogs(5)
				return &ownLogs{Store: open(t, options(t, logs)), logs: logs}
			}, storetest.Features{
				ExpiryGranularity: 50 * time.Millisecond,
				Reopen: func(t *testing.T, s dedup.Store) dedup.Store {
					return open(t, options(t, s.(*ownLogs).logs))
				},
				Ambiguous: func(_ *testing.T, s dedup.Store) { s.(*ownLogs).lose.Store(true) },
			})
		})
	}
}

// Every process has an index of its own, and all answer alike.
func TestConformanceOfSeveralProcesses(t *testing.T) {
	logs := newFakeLogs(3)
	storetest.Run(t, func(t *testing.T) dedup.Store {
		return storetest.InTurn(
			open(t, Options{Opener: logs, Wait: 20 * time.Second}),
			open(t, Options{Opener: logs, Wait: 20 * time.Second, Path: t.TempDir()}),
			open(t, Options{Opener: logs, Wait: 20 * time.Second}),
		)
	}, storetest.Features{ExpiryGranularity: 50 * time.Millisecond})
}

var testScope = dedup.Scope{ConsumerGroup: "orders-dedup", Name: "orders", TTL: time.Hour,
	Buckets: 16, Extractor: "key"}

func claimOf(id string, offset int64) dedup.Claim {
	return dedup.Claim{ID: dedup.ID(id), Owner: dedup.Coordinates{TopicID: [16]byte{1},
		Offset: offset}, Fingerprint: dedup.Fingerprint{byte(offset)}}
}

// mustClaim claims one ID until it is decided, as a lane does.
func mustClaim(t *testing.T, s *Store, c dedup.Claim) dedup.Answer {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		answers, err := s.Claim(t.Context(), testScope, []dedup.Claim{c})
		if answers[0].Outcome != dedup.Undecided {
			return answers[0]
		}
		if err == nil {
			t.Fatal("a claim is undecided, and there is no error")
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func wantOwner(t *testing.T, got dedup.Answer, outcome dedup.Outcome, offset int64) {
	t.Helper()
	if got.Outcome != outcome || got.Owner.Offset != offset {
		t.Fatalf("answer %+v, want outcome %d and the owner at %d", got, outcome, offset)
	}
}

// What was cut off the log has not been: nobody else knows of it.
func TestAnIndexIsNotBelievedAfterTheLogWasCut(t *testing.T) {
	for name, harm := range map[string]func(*fakeLogs){
		"cut": func(f *fakeLogs) { f.cut(testScope.ConsumerGroup, 0, 1) },
		"cut, and grown beyond what was read": func(f *fakeLogs) {
			f.cut(testScope.ConsumerGroup, 0, 1)
			other := Open(Options{Opener: f, times: quick})
			for i := range int64(3) {
				_, _ = other.Claim(context.Background(), testScope,
					[]dedup.Claim{claimOf("other", 100+i)})
			}
			_ = other.Close()
		},
	} {
		for _, path := range []string{"", t.TempDir()} {
			t.Run(name+map[bool]string{true: ", memory", false: ", files"}[path == ""],
				func(t *testing.T) {
					logs := newFakeLogs(1)
					s := open(t, Options{Opener: logs, Path: path})
					wantOwner(t, mustClaim(t, s, claimOf("a", 1)), dedup.Applied, 1)
					wantOwner(t, mustClaim(t, s, claimOf("b", 2)), dedup.Applied, 2)
					harm(logs)
					// perhaps only at its second try
					if got := mustClaim(t, s, claimOf("b", 3)); got.Owner.Offset != 3 {
						t.Fatalf("answer %+v, want the claimant for the owner", got)
					}
					rival := open(t, Options{Opener: logs})
					wantOwner(t, mustClaim(t, rival, claimOf("b", 4)), dedup.Exists, 3)
				})
		}
	}
}

// A log that was deleted and made again lacks claims: copies would pass. Only a start can tell what
// the fences build on, so a process that runs claims nothing there.
func TestALogThatTookThePlaceOfAnotherIsNotClaimedIn(t *testing.T) {
	for name, harm := range map[string]func(*fakeLogs){
		"recreated": func(f *fakeLogs) { f.recreate(testScope.ConsumerGroup, false) },
		"recreated with another agreement": func(f *fakeLogs) {
			f.recreate(testScope.ConsumerGroup, true)
		},
		"another agreement": func(f *fakeLogs) {
			if err := f.Registry(testScope.ConsumerGroup).Withdraw(
				t.Context(), agreementKey,
			); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, path := range []string{"", t.TempDir()} {
			t.Run(name+map[bool]string{true: ", memory", false: ", files"}[path == ""],
				func(t *testing.T) {
					logs := newFakeLogs(1)
					s := open(t, Options{Opener: logs, Path: path, Wait: 100 * time.Millisecond})
					wantOwner(t, mustClaim(t, s, claimOf("a", 1)), dedup.Applied, 1)
					before, _, err := s.Identity(t.Context(), testScope)
					if err != nil {
						t.Fatal(err)
					}
					harm(logs)
					fresh := open(t, Options{Opener: logs})
					wantOwner(t, mustClaim(t, fresh, claimOf("b", 2)), dedup.Applied, 2)
					for range 3 {
						answers, err := s.Claim(t.Context(), testScope,
							[]dedup.Claim{claimOf("b", 3)})
						if answers[0].Outcome != dedup.Undecided || err == nil {
							t.Fatalf("answer %+v, %v", answers[0], err)
						}
					}
					if after, _, err := fresh.Identity(
						t.Context(), testScope,
					); err != nil || after == before {
						t.Errorf("the identity was %s and is %s, %v", before, after, err)
					}
				})
		}
	}
}

func TestAnAppendOfUnknownOutcomeIsClaimedAgain(t *testing.T) {
	for _, what := range []fate{lost, unreported} {
		logs := newFakeLogs(2)
		s := open(t, Options{Opener: logs})
		wantOwner(t, mustClaim(t, s, claimOf("first", 1)), dedup.Applied, 1)
		failed := 0
		logs.mu.Lock()
		logs.appended = func() fate {
			if failed++; failed <= 3 {
				return what
			}
			return stands
		}
		logs.mu.Unlock()
		got := mustClaim(t, s, claimOf("a", 7))
		if got.Outcome == dedup.Undecided || got.Owner.Offset != 7 {
			t.Errorf("fate %d: %+v", what, got)
		}
		wantOwner(t, mustClaim(t, s, claimOf("a", 8)), dedup.Exists, 7)
	}
}

// While the log cannot be read, nothing is answered, and everything once it can again.
func TestAnOutageOfTheLogLeavesClaimsUndecided(t *testing.T) {
	logs := newFakeLogs(2)
	s := open(t, Options{Opener: logs, Wait: 50 * time.Millisecond})
	wantOwner(t, mustClaim(t, s, claimOf("a", 1)), dedup.Applied, 1)
	down := errors.New("no broker answers")
	logs.fail(down)
	answers, err := s.Claim(t.Context(), testScope, []dedup.Claim{claimOf("b", 2)})
	if answers[0] != (dedup.Answer{}) || err == nil {
		t.Errorf("%+v, %v", answers, err)
	}
	for !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), down.Error()) {
		if _, err = s.Lookup(t.Context(), testScope, "a"); err == nil {
			t.Fatal("a look-up was answered")
		}
	}
	logs.fail(nil)
	wantOwner(t, mustClaim(t, s, claimOf("a", 3)), dedup.Exists, 1)
}

func TestAnIndexGoesOnWhereItWasLeft(t *testing.T) {
	logs, dir := newFakeLogs(3), t.TempDir()
	s := Open(Options{Opener: logs, Path: dir, times: quick})
	for i := range int64(50) {
		mustClaim(t, s, claimOf(string(rune('a'+i)), i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Without the blocks in the log what is found comes from the files.
	for shard := range 3 {
		logs.retire(testScope.ConsumerGroup, shard, 1000)
	}
	again := open(t, Options{Opener: logs, Path: dir})
	for i := range int64(50) {
		wantOwner(t, mustClaim(t, again, claimOf(string(rune('a'+i)), 1000)), dedup.Exists, i)
	}
}

// Lost, damaged and foreign files only cost time.
func TestAnIndexWhoseFilesCannotBeUsedIsMadeAgain(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"no progress": func(dir string) error {
			return os.Remove(filepath.Join(dir, progressName))
		},
		"progress is no JSON": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, progressName), []byte("{"), 0o600)
		},
		"progress is newer": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, progressName), []byte(`{"version":3}`), 0o600)
		},
		"another log's": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, progressName), []byte(`{"version":2,"log":"x"}`),
				0o600)
		},
		"no claims": func(dir string) error {
			return os.RemoveAll(filepath.Join(dir, claimsName))
		},
		"no manifest": func(dir string) error {
			return os.Remove(filepath.Join(dir, claimsName, "MANIFEST"))
		},
		"claims were cut": func(dir string) error {
			return os.Truncate(filepath.Join(dir, claimsName, "segment-0000000001"), 100)
		},
		"the file is no index": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, claimsName, "segment-0000000001"), []byte("?"),
				0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			logs, dir := newFakeLogs(2), t.TempDir()
			s := Open(Options{Opener: logs, Path: dir, times: quick})
			for i := range int64(20) {
				mustClaim(t, s, claimOf(string(rune('a'+i)), i))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			groups, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(groups) != 1 {
				t.Fatal(groups, err)
			}
			if err := harm(groups[0]); err != nil {
				t.Fatal(err)
			}
			again := open(t, Options{Opener: logs, Path: dir})
			for i := range int64(20) {
				wantOwner(t, mustClaim(t, again, claimOf(string(rune('a'+i)), 1000)), dedup.Exists,
					i)
			}
		})
	}
}

func TestAnIndexBelongsToOneProcess(t *testing.T) {
	logs, dir := newFakeLogs(1), t.TempDir()
	first := open(t, Options{Opener: logs, Path: dir})
	wantOwner(t, mustClaim(t, first, claimOf("a", 1)), dedup.Applied, 1)
	second := open(t, Options{Opener: logs, Path: dir, Wait: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler)})
	_, err := second.Claim(t.Context(), testScope, []dedup.Claim{claimOf("a", 2)})
	if err == nil || !strings.Contains(err.Error(), "used by another process") {
		t.Errorf("got %v", err)
	}
}

func TestAReaderThatTheBeginningOfTheLogHasPassedBeginsAgain(t *testing.T) {
	logs, dir := newFakeLogs(1), t.TempDir()
	s := Open(Options{Opener: logs, Path: dir, times: quick})
	mustClaim(t, s, claimOf("a", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := open(t, Options{Opener: logs})
	mustClaim(t, other, claimOf("b", 2))
	mustClaim(t, other, claimOf("c", 3))
	logs.retire(testScope.ConsumerGroup, 0, 2)
	again := open(t, Options{Opener: logs, Path: dir})
	wantOwner(t, mustClaim(t, again, claimOf("a", 4)), dedup.Applied, 4)
	wantOwner(t, mustClaim(t, again, claimOf("c", 5)), dedup.Exists, 3)
}

func TestABlockOfANewerVersionStopsThisOne(t *testing.T) {
	logs := newFakeLogs(1)
	s := open(t, Options{Opener: logs, Wait: 200 * time.Millisecond})
	mustClaim(t, s, claimOf("a", 1))
	newer := forgetBlock(testHead)
	newer = newer[:len(newer)-sumBytes]
	newer[2] = version + 1
	log, err := logs.Open(t.Context(), testScope.ConsumerGroup)
	if err != nil {
		t.Fatal(err)
	}
	log.Append(0, seal(newer), time.Hour, func(error) {})
	for {
		answers, err := s.Claim(t.Context(), testScope, []dedup.Claim{claimOf("b", 2)})
		if answers[0].Outcome != dedup.Undecided {
			t.Fatal("answered beside a newer version")
		}
		if strings.Contains(err.Error(), errNewer.Error()) &&
			errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
}

// Copies are not written into the log: a process that reads it later would take one for the owner,
// once the owner's block is gone. All that is written for them is a block without claims, behind
// which they are looked up.
func TestCopiesAreNotWrittenIntoTheLog(t *testing.T) {
	logs := newFakeLogs(1)
	s := open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("a", 1))
	wantOwner(t, mustClaim(t, s, claimOf("a", 2)), dedup.Exists, 1)
	var b block
	entries := logs.entries(testScope.ConsumerGroup)[0]
	if err := b.parse(entries[len(entries)-1].Block); err != nil || len(entries) != 2 ||
		len(b.claims) != 0 {
		t.Errorf("%d blocks, the last one with %d claims: %v", len(entries), len(b.claims), err)
	}
}

// A claim of an ID that was owned appends a block without it. What the log says in front of that
// block counts.
func TestAnOwnerThatGoesWhileItsIDIsClaimedIsNotTheAnswer(t *testing.T) {
	logs := newFakeLogs(1)
	now := time.Now()
	logs.now = func() time.Time { return now }
	for name, meanwhile := range map[string]func(other *Store) error{
		"released": func(other *Store) error {
			return other.Release(context.Background(), testScope, "a")
		},
		"its scope forgotten": func(other *Store) error {
			return other.Forget(context.Background(), testScope)
		},
		"ended": func(*Store) error {
			now = now.Add(testScope.TTL)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, other := open(t, Options{Opener: logs}), open(t, Options{Opener: logs})
			mustClaim(t, s, claimOf("a", 1))
			goes := func() {
				if err := meanwhile(other); err != nil {
					t.Error(err)
				}
			}
			logs.beforeNext.Store(&goes)
			wantOwner(t, mustClaim(t, s, claimOf("a", 2)), dedup.Applied, 2)
			if err := other.Release(t.Context(), testScope, "a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A claim that comes to stand in the log when the sender has long given it up, and others have gone
// on, claims nothing.
func TestALateBlockClaimsNothing(t *testing.T) {
	logs := newFakeLogs(1)
	now := time.Now()
	logs.now = func() time.Time { return now }
	s := open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("a", 1))
	space := s.logs[testScope.ConsumerGroup].(*space)
	space.mu.Lock()
	late := space.reading.machine.shards[0].sight()
	h := head{version: version, log: space.reading.machine.agreed.ID, id: blockID{99, 1},
		scope: testScope.Name}
	space.mu.Unlock()
	now = now.Add(lateness + time.Second)
	h.written = now.UnixMilli()      // its claimant had stood still before it wrote the block
	mustClaim(t, s, claimOf("c", 3)) // the clock of the log has gone on
	logs.stand(testScope.ConsumerGroup, 0,
		claimsBlock(nil, h, time.Hour, late, []dedup.Claim{claimOf("b", 2)}, []int32{0}), time.Hour)
	wantOwner(t, mustClaim(t, s, claimOf("b", 4)), dedup.Applied, 4)
}

func TestALogThatForgetsBeforeTheTTLIsRefused(t *testing.T) {
	logs := newFakeLogs(1)
	logs.retention = testScope.TTL + Margin - time.Second
	s := open(t, Options{Opener: logs})
	_, err := s.Claim(t.Context(), testScope, []dedup.Claim{claimOf("a", 1)})
	if err == nil || !strings.Contains(err.Error(),
		"keeps blocks for 1h59m59s, and must for at least 2h0m0s") {
		t.Error(err)
	}
}

func TestLargeCallsAreSeveralBlocks(t *testing.T) {
	logs := newFakeLogs(1)
	s := open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("first", 9))
	var claims []dedup.Claim
	for i := range int64(3) {
		claims = append(claims, claimOf(strings.Repeat(string(rune('a'+i)), mostClaimBytes*2/3), i))
	}
	answers, err := s.Claim(t.Context(), testScope, claims)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		wantOwner(t, a, dedup.Applied, int64(i))
	}
	if got := len(logs.entries(testScope.ConsumerGroup)[0]); got != 1+3 {
		t.Errorf("%d blocks, want 1+3", got)
	}
}

// A client that does not deliver what stands in the log is replaced by another one.
func TestAReaderThatIsShownNothingBeginsAgain(t *testing.T) {
	logs := newFakeLogs(1)
	times := quick
	times.stuck = 20 * time.Millisecond
	s := Open(Options{Opener: logs, Wait: 100 * time.Millisecond, times: times, now: time.Now})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	mustClaim(t, s, claimOf("a", 1))
	logs.mute.Store(true)
	testkit.Eventually(t, 30*time.Second, "the reading ends", func() bool {
		_, _ = s.Claim(t.Context(), testScope, []dedup.Claim{claimOf("b", 2)})
		return errors.Is(s.States()[0].Err, errStuck)
	})
	logs.mute.Store(false)
	wantOwner(t, mustClaim(t, s, claimOf("b", 3)), dedup.Exists, 2)
}
