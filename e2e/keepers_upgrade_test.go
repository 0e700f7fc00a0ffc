package e2e_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Processes of the version before keepers, which keep all, and keepers share one log while records
// come: through an upgrade in which one of the old ones is killed, and back again.
func TestAnUpgradeToKeepersNeedsNoStop(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	before := earlier(t, beforeKeepers)
	for name, at := range map[string]func(*testing.T, string) place{"kafka": onClaimLog,
		"cassandra": onCassandraLog} {
		t.Run(name, func(t *testing.T) {
			deliveries(t, func(t *testing.T, delivery string) {
				upgrade(t, at(t, "files"), before, delivery)
			})
		})
	}
}

func upgrade(t *testing.T, at place, before, delivery string) {
	d := prepare(t, at, delivery, killed...)
	d.commandOf(before, "setup", "--skip-self-test")
	const piece, backlog = 300, 5000
	more, produced := d.traffic(46), 0
	produce := func(n int) {
		more(n)
		produced += n
	}
	// atWork waits for a process to be ready, and to forward records and drop copies from then on.
	// The input is never empty meanwhile.
	atWork := func(i *instance) *instance {
		t.Helper()
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		var first map[string]int
		testkit.Eventually(t, 2*time.Minute, i.name+" at work", func() bool {
			<-tick.C
			produce(piece)
			if !i.ready() {
				return false
			}
			now := i.outcomes()
			if first == nil {
				first = now
			}
			return now["forwarded"] > first["forwarded"] && now["duplicate"] > first["duplicate"]
		})
		return i
	}
	produce(backlog)
	one, two := d.launch(before, "one"), d.launch(before, "two")
	atWork(one)
	atWork(two)
	one.stop()
	one = atWork(d.keeping("one", "all")) // as after an upgrade that changes no setting
	if text := one.text(); strings.Contains(text, "is made again from the") {
		t.Errorf("the index files of the earlier version were not read:\n%s", text)
	}
	atWork(two) // beside it
	produce(backlog)
	two.kill()
	two = atWork(d.sharing("two", "shared")) // beside one, which keeps all
	one.stop()
	one = atWork(d.launch(before, "one")) // back, beside the keeper
	atWork(two)
	three := d.sharing("three", "none")
	one.stop()
	one = atWork(d.sharing("one", "shared"))
	atWork(three)
	two.stop()
	two = atWork(d.launch(before, "two"))
	atWork(one)
	d.waitFor(1)
	d.copies(0, produced/4, 3) // of what processes of both versions have claimed
	d.waitFor(1)
	for _, i := range []*instance{one, two, three} {
		i.stop()
	}
	d.mustLoseNothing()
}

// sharing launches a process with keepers, which the file does not know: an earlier version would
// refuse it.
func (d *deployment) sharing(name, keep string) *instance {
	d.t.Helper()
	return d.launch(kdedup, name, "KDEDUP_STORE_KEEPERS_KEEP="+keep,
		"KDEDUP_STORE_KEEPERS_LISTEN=127.0.0.1:0",
		"KDEDUP_STORE_KEEPERS_SECRET=0123456789abcdef0123456789abcdef")
}

// commandOf is command with another binary.
func (d *deployment) commandOf(binary string, args ...string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), binary, append(args, "-c", d.config)...)
	cmd.Env = testkit.Environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s %s: %v\n%s", binary, strings.Join(args, " "), err, out)
	}
}
