package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// onClaimLog is the real Kafka and nothing else. Each process has its index in the directory.
func onClaimLog(t *testing.T, index string) place {
	t.Helper()
	return place{brokers: testkit.Kafka(t), store: fmt.Sprintf(
		"{type: kafka, kafka: {index: %s, path: %q}}", index, t.TempDir())}
}

// onCassandraLog has the log in Cassandra.
func onCassandraLog(t *testing.T, index string) place {
	t.Helper()
	at := realServers(t)
	at.store = inLog(t, at.store, index)
	return at
}

// inLog has the claims of a store in Cassandra in its log, in the same keyspace.
func inLog(t *testing.T, store, index string) string {
	t.Helper()
	return strings.Replace(store, "keyspace:", fmt.Sprintf(
		"layout: log, log: {index: %s, path: %q}, keyspace:", index, t.TempDir()), 1)
}

// Two processes share a claim log; one is killed in mid-run, loses its index, and comes back.
func TestOnAClaimLogAKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		for _, index := range []string{"files", "memory"} {
			t.Run(index, func(t *testing.T) { killedOnALog(t, onClaimLog(t, index), delivery) })
		}
	})
}

func TestOnACassandraLogAKilledProcessLosesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		killedOnALog(t, onCassandraLog(t, "files"), delivery)
	})
}

func killedOnALog(t *testing.T, at place, delivery string) {
	t.Helper()
	d := deployAt(t, at, delivery, killed...)
	d.produce(100_000, 33)
	two := d.killInMidRun(nil)
	two.waitReady()
	d.waitFor(0.6)
	two.kill()
	_, path, _ := strings.Cut(at.store, `path: "`)
	path, _, _ = strings.Cut(path, `"`)
	if err := os.RemoveAll(path + "/instance-two"); err != nil {
		t.Fatal(err)
	}
	d.start("two")
	d.waitFor(1)
	d.mustLoseNothing()
}

func TestOnAClaimLogTwoProcessesCleanABacklog(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		backlogOnALog(t, onClaimLog(t, "files"), delivery)
	})
}

func TestOnACassandraLogTwoProcessesCleanABacklog(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		backlogOnALog(t, onCassandraLog(t, "memory"), delivery)
	})
}

func backlogOnALog(t *testing.T, at place, delivery string) {
	t.Helper()
	const n = 100_000
	d := deployAt(t, at, delivery)
	d.command("setup") // with the self-test
	d.produce(n, 34)
	one, two := d.start("one"), d.start("two")
	d.waitFor(1)
	testkit.Eventually(t, time.Minute, "outcomes that add up to the records read", func() bool {
		return total(one.outcomes(), two.outcomes()) == n
	})
	d.claimByHand() // beside the processes
	one.stop()
	two.stop()
	d.mustBeClean()
	d.command("validate")
	d.command("bench", "claims", "--ids", "20000")
}

// The points of this store alone: those of the lane are the same with every store.
func TestACrashAroundTheBlocksOfAClaimLog(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	around := slices.DeleteFunc(crashCases(claimLog, all), func(c crashCase) bool {
		return !slices.Contains([]string{"blocks-appended", "block-read-back"}, c.crashes[0].point)
	})
	for name, at := range map[string]func(*testing.T, string) place{"kafka": onClaimLog,
		"cassandra": onCassandraLog} {
		t.Run(name, func(t *testing.T) {
			side(t, len(around), around, func(t *testing.T, c crashCase) {
				c.run(t, at(t, "files"), 1500)
			})
		})
	}
}

// The claims of what a group has handled are gone with the log: copies of it would pass.
func TestAClaimLogThatWasMadeAgainIsRefusedUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	d := deployAt(t, onClaimLog(t, "files"), exactlyOnce)
	d.produce(1000, 35)
	one := d.start("one")
	d.waitFor(1)
	one.stop()
	log := d.group + ".claims"
	d.deleteTopic(log)
	if line, _ := d.refused("run", "--instance", "one"); !strings.Contains(line,
		log+": it does not exist; run: kdedup setup") {
		t.Error(line)
	}
	d.command("setup", "--skip-self-test")
	if line, _ := d.refused("run", "--instance", "one"); !strings.Contains(line,
		"the store knows nothing of what this consumer group has handled") {
		t.Error(line)
	}
	d.command("setup", "--skip-self-test", "--accept-empty-store")
	again := d.start("one")
	again.waitReady()
	d.produce(1000, 36)
	d.waitFor(1)
	again.stop()
}
