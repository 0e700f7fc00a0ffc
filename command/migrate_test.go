package command

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/migration"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/internal/testkit"
)

// twoStores are one pipeline on two directories. The first one has handled a and b.
func twoStores(t *testing.T) (before, after *place) {
	t.Helper()
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	before = newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "old"), "")
	before.produce("orders", "a", "b")
	before.runUntil(2)
	return before, newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "new"), "")
}

func (p *place) config() config.Config {
	p.t.Helper()
	c, err := config.Load(p.path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// claim makes the store, and in it an owner of its own.
func (p *place) claim(id string) {
	p.t.Helper()
	if err := os.Mkdir(p.config().Store.Embedded.Path, 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.must(0, "is blocked", "id claim -y "+id)
}

// migrate moves from one to the other.
func (p *place) migrate(code int, text string, from *place, flags ...string) {
	p.t.Helper()
	p.must(code, text, "migrate", append([]string{"--from", from.path}, flags...)...)
}

const notAllHere = "kdedup migrate has begun to move scope orders-dedup/orders here"

func TestClaimsMoveToAnotherStoreAndBack(t *testing.T) {
	before, after := twoStores(t)
	after.must(1, knowsNothing, "validate")
	after.migrate(0, "would move 2 claims of scope orders-dedup/orders", before, "--dry-run")
	after.migrate(1, "nothing was changed", before)
	after.must(1, knowsNothing, "validate")
	after.migrate(0, "2 claims copied, 0 were there, 0 had ended, 0 differ", before, "--yes")
	after.migrate(0, "was moved to store.embedded.path", before, "--yes")
	for _, command := range []string{"validate", "run", "id release -y a", "id claim -y z"} {
		before.must(1, "kdedup migrate has moved scope orders-dedup/orders to", command)
	}
	after.must(0, "", "validate")
	after.produce("orders", "a", "c", "b")
	after.runUntil(5)

	before.migrate(0, "1 claims copied, 2 were there", after, "-y")
	after.must(1, "kdedup migrate has moved scope orders-dedup/orders to", "run")
	before.produce("orders", "c", "d", "a")
	before.runUntil(8)
	if got := strings.Join(before.clean(), ""); got != "abcd" {
		t.Errorf("clean topic: %s", got)
	}
}

func TestADryRunOfAMigrationMakesNoStore(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	directory := filepath.Join(t.TempDir(), "new")
	after := newPlace(t, brokers, "orders", directory, "")
	before := newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "old"), "")
	after.migrate(1, "there is no store.embedded.path", before, "--dry-run")
	before.produce("orders", "a")
	before.runUntil(1)
	after.migrate(0, "would move 1 claims", before, "--dry-run")
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		t.Errorf("%s: %v", directory, err)
	}
}

// The group is looked at before anything else: it needs no store.
func TestNothingIsMovedWhileSomebodyClaims(t *testing.T) {
	before, after := twoStores(t)
	r := start(t, before.path)
	before.produce("orders", "c")
	testkit.Eventually(t, time.Minute, "the record is forwarded", func() bool {
		return len(before.clean()) == 3
	})
	after.migrate(1, "consumer group orders-dedup of orders has members", before, "-y")
	r.stopsWell()
	after.migrate(0, "3 claims copied", before, "-y")
}

// What differs ends the move. Until all is there the new store is refused, and the old one is not.
func TestAMoveThatHasNotEndedWellIsNotAccepted(t *testing.T) {
	before, after := twoStores(t)
	after.claim("a")
	after.migrate(1, "the stores differ in 1 claims", before, "-y")
	for _, command := range []string{"validate", "run", "backfill --force", "id claim -y z"} {
		after.must(1, notAllHere, command)
	}
	before.must(0, "", "validate")
	before.produce("orders", "c", "a")
	before.runUntil(4)
	after.must(0, "is free", "id release -y a")
	after.must(1, notAllHere, "validate")
	after.migrate(0, "scope orders-dedup/orders: moved to", before, "-y")
	after.produce("orders", "b", "d", "a", "c")
	after.runUntil(8)
	if got := strings.Join(after.clean(), ""); got != "abcd" {
		t.Errorf("clean topic: %s", got)
	}
}

// A claim too many is a difference, too: its copies would be dropped.
func TestAClaimThatOnlyTheNewStoreHasIsADifference(t *testing.T) {
	before, after := twoStores(t)
	after.claim("z")
	after.migrate(1, "z is owned by nobody; in the new store by partition -1", before, "-y")
	after.must(1, notAllHere, "run")
	before.must(0, "", "migrate --cancel", "-c", after.path, "--from", before.path)
	before.must(0, "", "validate")
	after.must(0, "accepted store.embedded.path", "setup", "--skip-self-test",
		"--accept-empty-store")
	after.must(0, "", "validate")
}

// inTheMiddle moves claims while something happens.
func inTheMiddle(t *testing.T, before, after *place, happens func()) error {
	t.Helper()
	once := false
	m, err := migration.Open(t.Context(), migration.Options{
		Old: before.config(), New: after.config(), Logger: slog.New(slog.DiscardHandler),
		Say: func(line string) { t.Log(line) },
		Progress: func(string, int64) {
			if !once {
				once = true
				happens()
			}
		},
		Agree: func(string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return m.Run(t.Context())
}

func TestAProcessThatStartsInTheMiddleIsNoticed(t *testing.T) {
	member := func(t *testing.T, p *place) {
		client, err := kgo.NewClient(kgo.SeedBrokers(p.broker), kgo.ConsumerGroup("orders-dedup"),
			kgo.ConsumeTopics("orders"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		testkit.Eventually(t, time.Minute, "the group has a member", func() bool {
			groups, err := kadm.NewClient(p.client).DescribeGroups(t.Context(), "orders-dedup")
			return err == nil && groups["orders-dedup"].State == "Stable"
		})
	}
	commit := func(t *testing.T, p *place) { // and it has ended again
		offsets := make(kadm.Offsets)
		offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 1, LeaderEpoch: -1})
		if err := kadm.NewClient(p.client).CommitAllOffsets(
			context.Background(), "orders-dedup", offsets,
		); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		happens func(*testing.T, *place)
		told    string
	}{
		"and lives":     {member, "consumer group orders-dedup of orders has members (Stable)"},
		"and has ended": {commit, `the offset of orders[0] in consumer group orders-dedup was "2"`},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := twoStores(t)
			err := inTheMiddle(t, before, after, func() { row.happens(t, before) })
			if err == nil || !strings.Contains(err.Error(), row.told) ||
				!strings.Contains(err.Error(), "The old store can be used as before") {
				t.Fatalf("%v, want %q", err, row.told)
			}
			if name == "and has ended" {
				after.must(1, notAllHere, "run")
				before.must(0, "", "validate")
			}
		})
	}
}

// Claims go into a claim log, into another one with other shards, and out of it.
func TestClaimsMoveIntoAClaimLogToOtherShardsAndOut(t *testing.T) {
	before, _ := twoStores(t)
	brokers := []string{before.broker}
	log := onTheLog(t, brokers, "", "")
	log.must(0, "", "setup", "--skip-self-test")
	log.migrate(0, "2 claims copied, 0 were there", before, "-y")
	log.must(0, "", "validate")
	log.produce("orders", "b", "c", "a")
	log.runUntil(5)

	sharded := onTheLog(t, brokers, `, topic: "other.{group}", shards: 3`, "")
	text, err := os.ReadFile(sharded.path)
	if err != nil {
		t.Fatal(err)
	}
	// one directory for the indexes of both
	same := regexp.MustCompile(`path: [^,}]+`).ReplaceAll(text,
		[]byte("path: "+log.config().Store.Kafka.Path))
	if err := os.WriteFile(sharded.path, same, 0o600); err != nil {
		t.Fatal(err)
	}
	sharded.must(0, "", "setup", "--skip-self-test")
	sharded.migrate(0, "3 claims copied", log, "-y")
	log.must(1, "kdedup migrate has moved", "run")
	sharded.produce("orders", "c", "d", "b")
	sharded.runUntil(8)

	out := newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "out"), "")
	out.migrate(0, "4 claims copied", sharded, "-y")
	out.produce("orders", "a", "b", "c", "d", "e")
	out.runUntil(13)
	if got := strings.Join(out.clean(), ""); got != "abcde" {
		t.Errorf("clean topic: %s", got)
	}
}

// The same store, other buckets: another scope.
func TestClaimsMoveToAnotherScopeOfOneStore(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	directory := filepath.Join(t.TempDir(), "store")
	before := newPlace(t, brokers, "orders", directory, "")
	before.produce("orders", "a", "b")
	before.runUntil(2)
	same := newPlace(t, brokers, "orders", directory, "    buckets: 7\n")
	same.must(1, "buckets was", "migrate", "--from", before.path, "-y")
	after := newPlace(t, brokers, "orders", directory, "    scope: orders-2\n    buckets: 7\n")
	after.migrate(0, "2 claims copied", before, "-y")
	before.must(1, "kdedup migrate has moved scope orders-dedup/orders", "run")
	after.produce("orders", "a", "c", "b")
	after.runUntil(5)
	if got := strings.Join(after.clean(), ""); got != "abc" {
		t.Errorf("clean topic: %s", got)
	}
	before.migrate(1, "both files name the same scope", before, "-y")
}

// A move may end at each of its steps. Until the last one the new store is refused, and after it
// the old one is; never are both used.
func TestAMoveThatIsInterruptedAnywhereIsRepeated(t *testing.T) {
	for steps := 1; ; steps++ {
		before, after := twoStores(t)
		ctx, cancel := context.WithCancel(t.Context())
		left, done := steps, false
		step := func() {
			if left--; left == 0 {
				cancel()
			}
		}
		m, err := migration.Open(t.Context(), migration.Options{
			Old: before.config(), New: after.config(), Logger: slog.New(slog.DiscardHandler),
			Say: func(string) { step() }, Progress: func(string, int64) { step() },
			Agree: func(string) error { step(); return nil },
		})
		if err == nil {
			err = m.Run(ctx)
			done = err == nil
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if !done {
			after.must(1, "", "validate")
			after.must(1, "", "run")
		}
		after.migrate(0, "", before, "-y")
		before.must(1, "kdedup migrate has moved", "validate")
		after.must(0, "", "validate")
		if done {
			return
		}
	}
}

func TestFilesThatDoNotBelongTogetherAreRefused(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.ClusterID("one"),
		kfake.SeedTopics(1, "orders", "other"))
	_, mirror := testkit.FakeKafka(t, kfake.ClusterID("two"), kfake.SeedTopics(1, "orders"))
	directory := filepath.Join(t.TempDir(), "old")
	before := newPlace(t, brokers, "orders", directory, "")
	before.produce("orders", "a")
	before.runUntil(1)
	fresh := func() string { return filepath.Join(t.TempDir(), "new") }
	before.must(2, "--from is missing", "migrate")
	newPlace(t, brokers, "other", fresh(), "").
		migrate(1, "the file of --from has no topic with the input other", before, "-y")
	newPlace(t, mirror, "orders", fresh(), "").
		migrate(1, "the two files name different Kafka clusters", before, "-y")
	ids := newPlace(t, brokers, "orders", fresh(), "")
	text, err := os.ReadFile(ids.path)
	if err == nil {
		err = os.WriteFile(ids.path, bytes.Replace(text, []byte("{from: key}"),
			[]byte("{from: value_hash}"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ids.migrate(1, "the claims are of other IDs", before, "-y")
	never := newPlace(t, brokers, "orders", fresh(), "    scope: never\n")
	if err := os.Mkdir(never.config().Store.Embedded.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	newPlace(t, brokers, "orders", fresh(), "").
		migrate(1, "knows no such scope: there is nothing to move", never, "-y")
}

// The notes in the two stores are not written at once. In between neither is used, and the way
// forward and the way back are open.
func TestAMoveThatEndsBetweenItsNotesIsRepeatedOrCancelled(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		before, after := twoStores(t)
		after.migrate(0, "moved to", before, "-y")
		c := after.config()
		scope := dedup.Scope{ConsumerGroup: "orders-dedup", Name: "orders", TTL: time.Hour}
		store := func(p *place, use func(dedup.Store) error) {
			s, err := embedded.Open(embedded.Options{Path: p.config().Store.Embedded.Path,
				Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				err = errors.Join(use(s), s.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		from := ""
		store(before, func(s dedup.Store) error {
			identity, _, err := dedup.IdentityOf(t.Context(), s, scope)
			from = identity + " | orders-dedup/orders | " + c.Store.Embedded.Path
			return err
		})
		store(after, func(s dedup.Store) error {
			return dedup.NotAllHere.Write(t.Context(), s, scope, from)
		})
		before.must(1, "kdedup migrate has moved", "run")
		after.must(1, notAllHere, "run")
		if cancel {
			after.must(0, "go on with the file of --from", "migrate", "--from", before.path,
				"--cancel")
			before.must(0, "", "validate")
			after.must(1, notAllHere, "run")
			continue
		}
		after.migrate(0, "0 claims copied, 2 were there", before, "-y")
		before.must(1, "kdedup migrate has moved", "run")
		after.must(0, "", "validate")
	}
}
