package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// deliveries runs a test in both modes, side by side: both spend much of their time waiting for the
// group and for the ends of transactions.
func deliveries(t *testing.T, test func(t *testing.T, delivery string)) {
	for _, delivery := range []string{exactlyOnce, atLeastOnce} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			test(t, delivery)
		})
	}
}

func TestTwoProcessesCleanABacklog(t *testing.T) {
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		const n = 200_000
		d := deploy(t, delivery)
		d.produce(n, 1)
		one, two := d.start("one"), d.start("two")
		d.waitFor(1)
		testkit.Eventually(t, 10*time.Second, "outcomes that add up to the records read",
			func() bool {
				return total(one.outcomes(), two.outcomes()) == n
			})
		t.Logf("outcomes: %v and %v", one.outcomes(), two.outcomes())
		one.stop()
		two.stop()
		d.mustBeClean()
	})
}

func TestAKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deploy(t, delivery, killed...)
		d.produce(200_000, 2)
		d.killInMidRun(nil)
		d.waitFor(1)
		d.mustLoseNothing()
	})
}

// killed are the settings of a deployment one of whose processes is killed.
var killed = []string{"batch_records: 1000", "session_timeout: 6s"}

// killInMidRun has two processes work, and kills one of them. Before that one is back, something
// may happen to what they need.
func (d *deployment) killInMidRun(meanwhile func()) (back *instance) {
	d.t.Helper()
	d.start("one")
	two := d.start("two")
	two.waitReady()
	d.waitFor(0.2)
	two.kill()
	if meanwhile != nil {
		meanwhile()
	}
	d.waitFor(0.3)
	return d.start("two")
}

func TestRebalancesInMidBatchLoseAndDoubleNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deploy(t, delivery, "batch_records: 500")
		d.produce(200_000, 3)
		d.start("one")
		for i := range 10 {
			guest := d.start(fmt.Sprint("guest-", i))
			guest.waitReady()
			guest.stop()
		}
		if committed, end := d.progress(); committed == end {
			t.Log("the backlog was done before the last rebalance")
		}
		d.waitFor(1)
		d.mustBeClean()
	})
}
