package cassandralog_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/cassandralog"
	"github.com/kdedup/kdedup/dedup/claimlog/logtest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestABlockWhoseAnswerWasLostStandsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, host string) {
		o := optionsFor(t, host)
		logs := share(t, founded(t, o))
		proxy := testkit.StartProxy(t, host)
		behind := o
		behind.Hosts, behind.Timeout = []string{proxy.Addr()}, 2*time.Second
		lossy := follow(t, share(t, newMade(t, behind, 1)), nil)
		lossy.mustAppend(time.Hour, "a")
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprint("b", i))
			proxy.LoseNext(func(answer []byte) bool {
				return bytes.Contains(answer, []byte("[applied]"))
			})
			lossy.mustAppend(time.Hour, want[i])
		}
		want = append([]string{"a"}, want...)
		lossy.wantRead(want...)
		follow(t, logs, nil).wantRead(want...)
	})
}

// Each process learns what is in the place that it wanted, and goes on behind it.
func TestRivalsAppendAllTheirBlocksInOneOrder(t *testing.T) {
	onEach(t, func(t *testing.T, host string) {
		const rivals, each, atOnce = 3, 120, 3 // across the end of a slice
		o := optionsFor(t, host)
		var processes []*tail
		for range rivals {
			processes = append(processes, follow(t, share(t, founded(t, o)), nil))
		}
		var all sync.WaitGroup
		for i, p := range processes {
			for lane := range atOnce {
				all.Go(func() {
					for n := range each / atOnce {
						if err := p.append(fmt.Sprintf("%d-%d-%d", i, lane, n),
							time.Hour); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		testkit.Eventually(t, time.Minute, "all read all", func() bool {
			return !slices.ContainsFunc(processes, func(p *tail) bool {
				return len(p.read()) < rivals*each
			})
		})
		order := processes[0].read()
		for _, p := range processes {
			if got := p.read(); !slices.Equal(got, order) {
				t.Errorf("one process read %q, another one %q", order, got)
			}
			p.places()
		}
		sorted := slices.Sorted(slices.Values(order))
		if once := slices.Compact(sorted); len(once) != rivals*each {
			t.Errorf("%d blocks are there, of %d", len(once), rivals*each)
		}
	})
}

// What lives of a log is its end. A reader begins there, and one that was further back is told.
func TestAReaderBeginsBehindWhatHasExpired(t *testing.T) {
	onEach(t, func(t *testing.T, host string) {
		o := optionsFor(t, host)
		logs := share(t, founded(t, o))
		operator := cluster(t, o)
		writer := follow(t, logs, nil)
		for i := range 4 {
			writer.mustAppend(time.Second, fmt.Sprint("early ", i))
		}
		writer.mustAppend(time.Hour+10*time.Minute, "x", "y")
		writer.mustAppend(time.Second, "z") // is kept as long as those in front of it
		testkit.Eventually(t, time.Minute, "the early blocks are gone", func() bool {
			return blocks(t, operator, writer.ID()) == 3
		})
		late := follow(t, logs, nil)
		late.wantRead("x", "y", "z")
		if first, end := late.places(); first != 4 || end != 7 {
			t.Errorf("read places %d to %d", first, end)
		}
		late.mustAppend(time.Hour, "w")
		writer.wantRead("early 0", "early 1", "early 2", "early 3", "x", "y", "z", "w")
		spans, err := late.Spans(t.Context(), []claimlog.Position{{Next: 2}})
		if err != nil || spans[0] != (claimlog.Span{First: 4, End: 8}) {
			t.Errorf("who has read two blocks of four is told %v, %v", spans, err)
		}
		if _, err := late.Spans(t.Context(), []claimlog.Position{{Next: 6}}); err != nil {
			t.Error(err)
		}
		if _, err := late.Spans(t.Context(), []claimlog.Position{{Next: 9}}); !errors.Is(err,
			claimlog.ErrCut) {
			t.Errorf("who has read what is not there is told %v", err)
		}
	})
}

// Once all has expired, nobody can see which places were used. All processes go on at the same
// place all the same: those that were there, those that come again, and new ones.
func TestALogThatHasExpiredGoesOnAtOnePlace(t *testing.T) {
	for name, quiet := range map[string]bool{"while a process waits": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, host string) {
				o := optionsFor(t, host)
				before := follow(t, share(t, founded(t, o)), nil)
				operator := cluster(t, o)
				before.mustAppend(time.Second, "a", "b", "c")
				before.wantRead("a", "b", "c")
				testkit.Eventually(t, time.Minute, "the blocks are gone", func() bool {
					return blocks(t, operator, before.ID()) == 0
				})
				if quiet { // it is the first to append
					before.mustAppend(time.Hour, "d")
				}
				fresh := follow(t, share(t, founded(t, o)), nil)
				back := follow(t, share(t, founded(t, o)), &claimlog.Position{Next: 3})
				fresh.mustAppend(time.Hour, "e")
				back.mustAppend(time.Hour, "f")
				before.mustAppend(time.Hour, "g")
				want := []string{"e", "f", "g"}
				if quiet {
					want = append([]string{"d"}, want...)
				}
				fresh.wantRead(want...)
				back.wantRead(want...)
				before.wantRead(append([]string{"a", "b", "c"}, want...)...)
				for _, p := range []*tail{before, fresh, back} {
					if _, end := p.places(); end != int64(cassandralog.SliceBlocks+len(want)) {
						t.Errorf("read up to place %d", end)
					}
				}
			})
		})
	}
}

// A table that was truncated has none of the claims that an index still knows.
func TestATruncatedTableIsNoticed(t *testing.T) {
	for _, table := range []string{"claim_log", "claim_log_registry"} {
		t.Run(table, func(t *testing.T) {
			o := optionsFor(t, testkit.Cassandra(t))
			logs, operator := share(t, newMade(t, o, 2)), cluster(t, o)
			scope := dedup.Scope{ConsumerGroup: group, Name: "orders", TTL: time.Hour, Buckets: 16,
				Extractor: "key"}
			running := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 3 * time.Second,
				Path: t.TempDir()})
			stopped := claimlog.Options{Opener: logs, Wait: 3 * time.Second, Path: t.TempDir()}
			before := claimlog.Open(stopped)
			logtest.WantOwner(t, logtest.MustClaim(t, running, scope, logtest.ClaimOf("a", 1)), 1)
			logtest.WantOwner(t, logtest.MustClaim(t, before, scope, logtest.ClaimOf("a", 2)), 1)
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			mustRun(t, operator, "TRUNCATE "+table)
			testkit.Eventually(t, time.Minute, "nothing is claimed", func() bool {
				_, err := running.Claim(t.Context(), scope, []dedup.Claim{logtest.ClaimOf("b", 3)})
				return err != nil && strings.Contains(err.Error(),
					"it does not exist, or a table of it was truncated; run: kdedup setup")
			})
			if err := logs.Found(t.Context(), group, 2, false, func(string) {}); err != nil {
				t.Fatal(err)
			}
			again := logtest.Open(t, stopped)
			logtest.WantOwner(t, logtest.MustClaim(t, again, scope, logtest.ClaimOf("a", 4)), 4)
			testkit.Eventually(t, time.Minute, "the process that runs claims nothing", func() bool {
				_, err := running.Claim(t.Context(), scope, []dedup.Claim{logtest.ClaimOf("a", 5)})
				return err != nil && strings.Contains(err.Error(), "deleted and made again, so its")
			})
		})
	}
}

// A log that was set back by a restore is not written to by who has read more of it.
func TestALogThatWasSetBackIsNotWrittenTo(t *testing.T) {
	for name, harm := range map[string]string{
		"the last blocks are gone": "BEGIN BATCH " +
			"UPDATE claim_log SET last = %[3]d WHERE %[1]s; " +
			"DELETE FROM claim_log WHERE %[1]s AND seq = 2; APPLY BATCH",
		"all blocks are gone": "DELETE FROM claim_log WHERE %[1]s",
		"one is gone, and others came": "BEGIN BATCH UPDATE claim_log SET last = 7 WHERE %[1]s; " +
			"UPDATE claim_log SET block = 0x0100000000000000070000000000000000000000000000000000000000000000ff WHERE %[1]s AND seq = 2; APPLY BATCH",
	} {
		t.Run(name, func(t *testing.T) {
			o := optionsFor(t, testkit.Cassandra(t))
			running := follow(t, share(t, founded(t, o)), nil)
			operator := cluster(t, o)
			idle := follow(t, share(t, founded(t, o)), nil)
			running.mustAppend(time.Hour, "a", "b")
			uuid := running.ID()
			where := fmt.Sprintf("consumer_group = '%s' AND log = %s AND shard = 0 AND slice = 0",
				group, uuid)
			var last int64
			if err := operator.Query("SELECT DISTINCT last FROM claim_log WHERE " +
				where).Scan(&last); err != nil {
				t.Fatal(err)
			}
			running.mustAppend(time.Hour, "c")
			idle.wantRead("a", "b", "c")
			mustRun(t, operator, strings.NewReplacer("%[1]s", where, "%[3]d",
				fmt.Sprint(last)).Replace(harm))
			if err := running.append("d", time.Hour); err == nil {
				t.Error("a block was appended behind others that it does not know")
			}
			for _, p := range []*tail{running, idle} {
				if err := p.wantEnd(); !errors.Is(err, claimlog.ErrCut) {
					t.Error(err)
				}
			}
		})
	}
}

// A hole is not passed over: what is in it may be a claim.
func TestAHoleEndsTheReading(t *testing.T) {
	o := optionsFor(t, testkit.Cassandra(t))
	logs, operator := share(t, founded(t, o)), cluster(t, o)
	writer := follow(t, logs, nil)
	writer.mustAppend(2*time.Hour, "a", "b", "c", "d")
	mustRun(t, operator, fmt.Sprintf("DELETE FROM claim_log WHERE consumer_group = '%s' AND "+
		"log = %s AND shard = 0 AND slice = 0 AND seq = 1", group, writer.ID()))
	late := follow(t, logs, &claimlog.Position{Next: 1})
	if err := late.wantEnd(); !errors.Is(err, claimlog.ErrCut) {
		t.Error(err)
	}
}

func TestAProcessWithAWrongClockIsRefused(t *testing.T) {
	o := optionsFor(t, testkit.Cassandra(t))
	founded(t, o).Close()
	for ahead, want := range map[time.Duration]string{
		time.Minute:  "it is 1m0s ahead of that of the Cassandra node",
		-time.Minute: "behind that of the Cassandra node",
	} {
		logs := cassandralog.New(cassandralog.WithClock(cassandralog.Options{Cassandra: o},
			func() time.Time { return time.Now().Add(ahead) }))
		if _, err := logs.Open(t.Context(), group); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", ahead, err)
		}
		if err := logs.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A clock that jumps while the process runs gives no block its time.
func TestAClockThatJumpsStopsTheProcess(t *testing.T) {
	o := optionsFor(t, testkit.Cassandra(t))
	founded(t, o).Close()
	var mu sync.Mutex
	var ahead time.Duration
	logs := cassandralog.New(cassandralog.WithClock(cassandralog.Options{Cassandra: o},
		func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}))
	t.Cleanup(func() { _ = logs.Close() })
	p := follow(t, logs, nil)
	p.mustAppend(time.Hour, "a")
	mu.Lock()
	ahead = time.Hour
	mu.Unlock()
	if err := p.append("b", time.Hour); err == nil {
		t.Error("a block was appended an hour ahead")
	}
	if err := p.wantEnd(); !strings.Contains(err.Error(), "ahead of that of the Cassandra node") {
		t.Error(err)
	}
	mu.Lock()
	ahead = 0
	mu.Unlock()
	other := follow(t, share(t, newMade(t, o, 1)), nil)
	other.mustAppend(time.Hour, "c")
	other.wantRead("a", "c")
}

func TestSeveralSetupsMakeOneLog(t *testing.T) {
	o := optionsFor(t, testkit.Cassandra(t))
	share(t, newMade(t, o, 2))
	var setups sync.WaitGroup
	for range 4 {
		setups.Go(func() {
			logs := cassandralog.New(cassandralog.Options{Cassandra: o})
			defer logs.Close()
			if err := logs.Found(t.Context(), group, 2, false, func(string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	setups.Wait()
	log, err := share(t, newMade(t, o, 2)).Open(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsMissingNamesTheRemedy(t *testing.T) {
	o := optionsFor(t, testkit.Cassandra(t))
	logs := cassandralog.New(cassandralog.Options{Cassandra: o})
	t.Cleanup(func() { _ = logs.Close() })
	try := func(want string) {
		t.Helper()
		if _, err := logs.Open(t.Context(), group); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	try("keyspace " + o.Keyspace + " does not exist; create it with: kdedup setup")
	if err := logs.Setup(t.Context(), replication, time.Hour, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	try("claim_log: it does not exist, or a table of it was truncated; run: kdedup setup -c FILE")
	if _, err := logs.Registry(group).Decided(t.Context(), "log"); err == nil ||
		!strings.Contains(err.Error(), "run: kdedup setup -c FILE") {
		t.Error(err)
	}
	var said []string
	for range 2 {
		if err := logs.Found(t.Context(), group, 3, false, func(line string) {
			said = append(said, line)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"made the claim log of orders-dedup with 3 shards",
		"claim log of orders-dedup exists"}; !slices.Equal(said, want) {
		t.Errorf("setup said %q", said)
	}
	if err := logs.Check(t.Context(), group); err != nil {
		t.Error(err)
	}
	operator := cluster(t, o)
	mustRun(t, operator, "DROP TABLE claim_log_registry")
	mustRun(t, operator, "CREATE TABLE claim_log_registry (id int PRIMARY KEY)")
	again := cassandralog.New(cassandralog.Options{Cassandra: o})
	t.Cleanup(func() { _ = again.Close() })
	if _, err := again.Open(t.Context(), group); err == nil ||
		!strings.Contains(err.Error(), "claim_log_registry has the columns [id], want") {
		t.Error(err)
	}
}

// A process may die between the opening of a slice and its first block.
func TestASliceThatNobodyBeganIsBegunByOthers(t *testing.T) {
	for name, blocks := range map[string]int{"the first": 0, "another": cassandralog.SliceBlocks} {
		t.Run(name, func(t *testing.T) {
			o := optionsFor(t, testkit.Cassandra(t))
			process := follow(t, share(t, founded(t, o)), nil)
			var want []string
			var all sync.WaitGroup
			for i := range blocks {
				want = append(want, fmt.Sprint(i))
				all.Go(func() {
					if err := process.append(want[i], time.Hour); err != nil {
						t.Error(err)
					}
				})
				all.Wait()
			}
			process.wantRead(want...)
			value := make([]byte, 16)
			value[7], value[15] = byte(blocks/cassandralog.SliceBlocks), 99
			mustRun(t, cluster(t, o), "INSERT INTO claim_log_registry (consumer_group, key, value) "+
				"VALUES (?, ?, ?)", group, fmt.Sprintf("end %s 0", process.ID()), value)
			want = append(want, "next")
			process.mustAppend(time.Hour, "next")
			process.wantRead(want...)
			follow(t, share(t, founded(t, o)), nil).wantRead(want...)
		})
	}
}

// A process that stands at the beginning of a slice finds that others have filled it and are in the
// next: it reads on, and keeps its index.
func TestAProcessThatIsASliceBehindReadsOn(t *testing.T) {
	o := optionsFor(t, testkit.Cassandra(t))
	ahead := follow(t, share(t, founded(t, o)), nil)
	behind := follow(t, share(t, founded(t, o)), nil)
	many := func() {
		var all sync.WaitGroup
		for i := range cassandralog.SliceBlocks {
			all.Go(func() {
				if err := ahead.append(fmt.Sprint(i), time.Hour); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	for round := range 3 {
		many()
		ahead.mustAppend(time.Hour, "more")
		behind.mustAppend(time.Hour, "mine")
		if _, end := behind.places(); end < int64(cassandralog.SliceBlocks*(round+1)) {
			t.Errorf("read up to place %d", end)
		}
	}
	if err := behind.why(); err != nil {
		t.Error(err)
	}
}
