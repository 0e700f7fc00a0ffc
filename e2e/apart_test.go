package e2e_test

import (
	"errors"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Records go from one real Kafka to another with exactly_once, while processes are killed and come
// and go, and each broker restarts. Each ID is there once.
func TestExactlyOnceOntoAnotherCluster(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, output := onTwoClusters(t)
	d := deployAt(t, at, exactlyOnce, killed...)
	d.produce(100_000, 47)
	two := d.killInMidRun(nil) // its partitions go to another one
	two.waitReady()
	d.waitFor(0.4)
	three := d.start("three")
	three.waitReady() // and some of those to this one
	d.waitFor(0.5)
	two.kill()
	output.Kill()
	if err := output.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.waitFor(0.7)
	two = d.start("two")
	two.waitReady()
	two.stop() // in good order
	three.kill()
	d.start("three").waitReady()
	d.waitFor(1)
	if v := d.check(); v.lost > 0 || v.doubled > 0 {
		t.Errorf("%d lost, %d doubled", v.lost, v.doubled)
	}
}

// 200,000 records go from one real Kafka to another through three processes. Ten times one of them
// is killed, six times one leaves and comes back, and each broker restarts twice, once after a
// kill.
func TestKillsRebalancesAndRestartsBetweenTwoClusters(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, input, output := between(t)
	d := deployAt(t, at, exactlyOnce, inSmallBatches...)
	d.produce(200_000, 52)
	names := []string{"one", "two", "three"}
	var processes []*instance
	for _, name := range names {
		processes = append(processes, d.start(name))
	}
	back := func(n int) { processes[n] = d.start(names[n]) }
	restart := func(c cluster, end func() error) func(int) {
		return func(int) {
			if err := errors.Join(end(), c.Restart(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
	killed := func(c cluster) func() error { return func() error { c.Kill(); return nil } }
	kill := func(n int) { processes[n].kill(); back(n) }
	leave := func(n int) { processes[n].stop(); back(n) }
	events := []func(int){kill, leave, kill, restart(output, killed(output)), kill, leave, kill,
		restart(input, killed(input)), leave, kill, kill, leave, restart(output, output.Stop),
		kill, leave, kill, restart(input, input.Stop), kill, leave, kill}
	for n, event := range events {
		d.waitFor(0.9 * float64(n+1) / float64(len(events)))
		if committed, end := d.progress(); committed == end {
			t.Fatalf("the backlog was done before event %d", n)
		}
		event(n % len(processes))
		processes[n%len(processes)].waitReady()
	}
	d.waitFor(1)
	d.mustBeClean()
	for _, i := range processes {
		i.stop()
	}
}
