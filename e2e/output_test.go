package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// onTwoClusters has the input, the group, the fence and a claim log on one real broker, and what is
// forwarded on another.
func onTwoClusters(t *testing.T) (at place, output *servers.Server) {
	t.Helper()
	servers.Need(t)
	output, err := servers.StartKafka(t.Context(),
		servers.KafkaOptions{Dir: t.TempDir(), Heap: "320m", Flags: servers.QuickStart})
	servers.ForTest(t, output, err)
	at = onClaimLog(t, "files")
	at.output = []string{output.Addr()}
	return at, output
}

// Processes are killed in mid-run, and at each point at which the two clusters know different
// things. Nothing is lost, all is byte for byte and in order, and a kill repeats no more than the
// batches that the process had in hand.
func TestACrashRepeatsOneBatchOnAnotherCluster(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, _ := onTwoClusters(t)
	t.Run("killed in mid-run", func(t *testing.T) {
		d := deployAt(t, at, atLeastOnce, killed...)
		d.produce(200_000, 41)
		two := d.killInMidRun(nil)
		two.waitReady()
		d.waitFor(0.6)
		two.kill()
		d.start("two").waitReady()
		d.waitFor(1)
		const kills, lanes, batch = 2, 2, 1000
		if v := d.check(); v.lost > 0 || v.doubled > kills*lanes*batch {
			t.Errorf("%d lost, %d doubled, which is more than %d kills may repeat", v.lost,
				v.doubled, kills)
		}
		d.forwardedOnlyThere()
	})
	around := slices.DeleteFunc(crashCases(claimLog, all), func(c crashCase) bool {
		return c.delivery != atLeastOnce || !slices.Contains([]string{"record-produced",
			"batch-produced", "produce-unsent", "produce-sent", "produce-answered",
			"batch-forwarded", "fences-acknowledged", "offset-commit-unsent",
			"offset-commit-sent", "batch-committed"}, c.crashes[0].point)
	})
	side(t, 6, around, func(t *testing.T, c crashCase) {
		at := at
		at.store = embeddedStore(t)
		c.run(t, at, 1500)
	})
}

// forwardedOnlyThere wants nothing of it on the cluster of the input.
func (d *deployment) forwardedOnlyThere() {
	d.t.Helper()
	topics, err := d.admin.ListTopics(d.t.Context(), d.output(), d.input+".dlq",
		d.group+".fence")
	if err != nil {
		d.t.Fatal(err)
	}
	for name, want := range map[string]bool{
		d.output(): false, d.input + ".dlq": false, d.group + ".fence": true,
	} {
		if topics.Has(name) != want {
			d.t.Errorf("%s on the cluster of the input: %t", name, !want)
		}
	}
}

// The broker of the other cluster dies while batches are on their way to it, and so does a process,
// so that the group rebalances. What the lanes hold is committed only once it is forwarded.
func TestAnOutageOfTheOtherClusterOnlyDelays(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, output := onTwoClusters(t)
	d := deployAt(t, at, atLeastOnce, killed...)
	d.produce(100_000, 42)
	one, two := d.start("one"), d.start("two")
	two.waitReady()
	d.waitFor(0.1)
	output.Kill()
	for _, i := range []*instance{one, two} {
		testkit.Eventually(t, time.Minute, i.name+" misses the broker", func() bool {
			return strings.Contains(i.text(), "a broker cannot be reached")
		})
	}
	if committed, end := d.progress(); committed == end {
		t.Fatal("the backlog was done before the outage")
	}
	two.kill()
	testkit.Eventually(t, time.Minute, "a rebalance that waits for a batch", func() bool {
		groups, err := d.admin.DescribeGroups(t.Context(), d.group)
		return err == nil && groups[d.group].State == "PreparingRebalance"
	})
	if err := output.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.waitFor(1)
	one.waitReady()
	const processes, lanes, batch = 2, 2, 1000
	if v := d.check(); v.lost > 0 || v.doubled > processes*lanes*batch {
		t.Errorf("%d lost, %d doubled, which is more than all lanes had in hand", v.lost,
			v.doubled)
	}
	one.stop()
}
