package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestAMoveFromStoreToStoreLosesAndDoublesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	server := startRedis(t, map[string]string{"appendonly": "yes", "appendfsync": "always"})
	movedTwice(t, onPostgres(t), onRedis(t, server.Addr()),
		place{brokers: testkit.Kafka(t), store: embeddedStore(t)})
}

// Rows and log are in one keyspace.
func TestAMoveFromRowsToLogsLosesAndDoublesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	rows := realServers(t)
	log := rows
	log.store = inLog(t, rows.store, "files")
	movedTwice(t, rows, log, onClaimLog(t, "memory"))
}

// movedTwice has a pipeline go on with other stores in the middle of its work: first after a crash,
// then after an orderly stop. What is read again, and what is produced again, is dropped wherever
// its claims are.
func movedTwice(t *testing.T, places ...place) {
	t.Helper()
	const n = 60_000
	first := deployAt(t, places[0], exactlyOnce, killed...)
	second, third := first.at(places[1]), first.at(places[2])
	first.produce(n, 41)

	one := first.start("one")
	first.waitFor(0.3)
	if line, _ := second.refused("migrate", "--from", first.config, "--yes"); !strings.Contains(
		line, "has members") {
		t.Errorf("beside a process: %s", line)
	}
	one.kill()
	first.waitEmpty()
	second.migrate(first)
	if line, _ := first.refused("run"); !strings.Contains(line, "kdedup migrate has moved") {
		t.Errorf("the old store: %s", line)
	}
	two := second.start("two")
	second.waitFor(0.7)
	two.stop()

	second.waitEmpty()
	third.migrate(second)
	third.goBack()
	third.produceAgain(2000)
	third.start("three")
	third.waitFor(1)
	third.mustBeClean()
}

// migrate moves the claims here, and wants both stores compared.
func (d *deployment) migrate(from *deployment) {
	d.t.Helper()
	d.command("setup", "--skip-self-test")
	said := d.command("migrate", "--from", from.config, "--yes")
	d.t.Log(said)
	for _, want := range []string{" 0 differ\n", "moved to store."} {
		if !strings.Contains(said, want) {
			d.t.Errorf("%q is missing in\n%s", want, said)
		}
	}
}

// waitEmpty returns when the group has given up a killed process, and its transaction has ended.
func (d *deployment) waitEmpty() {
	d.t.Helper()
	testkit.Eventually(d.t, time.Minute, "the group is empty", func() bool {
		groups, err := d.admin.DescribeGroups(d.t.Context(), d.group)
		return err == nil && groups[d.group].State == "Empty"
	})
	d.waitStable(d.output())
}

// goBack has everything read again.
func (d *deployment) goBack() {
	d.t.Helper()
	offsets := make(kadm.Offsets)
	for p := range int32(partitions) {
		offsets.Add(kadm.Offset{Topic: d.input, Partition: p, At: 0, LeaderEpoch: -1})
	}
	if err := d.admin.CommitAllOffsets(d.t.Context(), d.group, offsets); err != nil {
		d.t.Fatal(err)
	}
}

// produceAgain adds copies of the first messages, each on another partition than before.
func (d *deployment) produceAgain(ids int) {
	d.t.Helper()
	for id := range ids {
		d.client.Produce(d.t.Context(), d.record(id, 1+id%(partitions-1), 1_000_000+id), nil)
	}
	if err := d.client.Flush(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}
