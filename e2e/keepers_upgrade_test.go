package e2e_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Processes of the version before keepers, which keep all, and keepers share one log: through an
// upgrade in which one of the old ones is killed, and back again.
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
	const n = 80_000
	d.produce(n, 46)
	one, two := d.launch(before, "one"), d.launch(before, "two")
	two.waitReady()
	d.waitFor(0.15)
	one.stop()
	one = d.keeping("one", "all") // as after an upgrade that changes no setting
	one.waitReady()
	if text := one.text(); strings.Contains(text, "is made again from the") {
		t.Errorf("the index files of the earlier version were not read:\n%s", text)
	}
	d.waitFor(0.3)
	two.kill()
	two = d.sharing("two", "shared") // beside one, which keeps all
	two.waitReady()
	d.waitFor(0.4)
	one.stop()
	one = d.launch(before, "one") // back, beside the keeper
	one.waitReady()
	d.waitFor(0.55)
	three := d.sharing("three", "none")
	one.stop()
	one = d.sharing("one", "shared")
	one.waitReady()
	three.waitReady()
	d.waitFor(0.7)
	two.stop()
	two = d.launch(before, "two")
	two.waitReady()
	d.waitFor(1)
	d.copies(0, n/4, 3) // of what processes of both versions have claimed
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
