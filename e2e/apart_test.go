package e2e_test

import (
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
