package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// A real MirrorMaker 2 brings an input to another cluster, and the offsets of the group with
// kdedup's text beside them. Nobody has forwarded the records there: they are not skipped.
func TestOffsetsThatMirrorMakerCopiesAreRefusedThere(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	servers.Need(t)
	const records = 200
	here := deployAt(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, exactlyOnce)
	here.spreadIDs(records)
	one := here.start("one")
	here.waitFor(1)
	one.stop()

	kafka, err := servers.StartKafka(t.Context(), servers.KafkaOptions{Dir: t.TempDir()})
	brokers := []string{servers.ForTest(t, kafka, err).Addr()}
	mirror, err := servers.StartMirror(t.Context(), servers.MirrorOptions{Dir: t.TempDir(),
		From: strings.Join(here.brokers, ","), To: brokers[0], Topics: here.input})
	servers.ForTest(t, mirror, err)
	there := *here
	there.brokers = brokers
	there.connect()
	testkit.Eventually(t, 3*time.Minute, "the records and the group on the other cluster",
		func() bool {
			committed, end := there.progress()
			return end >= records && committed == end && there.marked() == partitions
		})

	there = *there.at(place{brokers: brokers, store: embeddedStore(t)})
	there.command("setup", "--skip-self-test")
	for _, command := range []string{"validate", "run"} {
		out, code := there.try(command)
		if code != 1 || !strings.Contains(out, "marks of kdedup that were not made here") {
			t.Fatalf("kdedup %s: exit code %d\n%s", command, code, out)
		}
	}
	if err := mirror.Stop(); err != nil { // or it brings the offsets again
		t.Fatal(err)
	}
	if _, err := there.admin.DeleteGroup(t.Context(), there.group); err != nil {
		t.Fatal(err)
	}
	two := there.start("two")
	testkit.Eventually(t, time.Minute, "all records on the other clean topic", func() bool {
		return total(there.arrived()) == records
	})
	two.stop()
}

// spreadIDs produces records with an ID each.
func (d *deployment) spreadIDs(n int) {
	d.t.Helper()
	for i := range n / partitions {
		d.spread(fmt.Sprint("round-", i), partitions, 0)
	}
}

// marked is on how many partitions a text of kdedup stands beside the group's offset.
func (d *deployment) marked() (n int) {
	d.t.Helper()
	offsets, err := d.admin.FetchOffsets(d.t.Context(), d.group)
	if err != nil {
		return 0
	}
	for _, o := range offsets[d.input] {
		if strings.HasPrefix(o.Metadata, "kdedup:") {
			n++
		}
	}
	return n
}
