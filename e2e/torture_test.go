package e2e_test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// What `kdedup torture` says of kdedup itself, and of a consumer that commits what it has copied,
// but tells no copy from an original.
func TestTortureTellsADeduplicatorFromACopy(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	dumb := t.TempDir() + "/copy"
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dumb,
		"github.com/kdedup/kdedup/bench/contestants/copy")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d := deployAt(t, onClaimLog(t, "memory"), exactlyOnce, killed...)
	said, err := d.torture(kdedup, "run", "-c", d.config, "--instance", "{process}")
	if err != nil {
		t.Errorf("kdedup: %v\n%s", err, said)
	}
	other := prepare(t, onClaimLog(t, "memory"), exactlyOnce)
	said, err = other.torture(dumb, "-brokers", strings.Join(d.brokers, ","), "-group",
		other.group, "-input", other.input, "-output", other.output())
	if err == nil || !strings.Contains(said, "\n              doubled") ||
		!strings.Contains(said, "the clean topic is wrong: 0 lost, ") {
		t.Errorf("a copy: %v\n%s", err, said)
	}
}

// The clean topic is on another cluster, and so is all that the kills leave open.
func TestTortureReachesTheCleanTopicOnAnotherCluster(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, _ := onTwoClusters(t)
	d := deployAt(t, at, exactlyOnce, killed...)
	said, err := d.torture(kdedup, "run", "-c", d.config, "--instance", "{process}")
	if err != nil || !strings.Contains(said, "through 2 processes with 8 kills") {
		t.Errorf("kdedup: %v\n%s", err, said)
	}
}

// The example of its help, as a reader pastes it, with fewer records and kills.
func TestTheExampleOfTortureRunsAsPrinted(t *testing.T) {
	t.Parallel()
	brokers := testkit.Kafka(t)
	help, err := exec.CommandContext(t.Context(), kdedup, "torture", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(help), "Examples:\n")
	example, _, found := strings.Cut(example, "\n\n")
	if !found {
		t.Fatalf("the help has no example:\n%s", help)
	}
	topic := strings.ToLower(rand.Text())
	script := strings.NewReplacer("\n  ", "\n", "localhost:9092", brokers[0], "t1", topic,
		" -- ", " --records 5000 --kills 1 --during 5s --patience 5s -- ",
	).Replace("\n" + example)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(testkit.Environment(),
		"PATH="+filepath.Dir(kdedup)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, script, said)
	}
}

func (d *deployment) torture(command ...string) (said string, err error) {
	d.t.Helper()
	args := []string{"torture", "--brokers", strings.Join(d.brokers, ","), "--topic", d.input,
		"--clean", d.output(), "--records", "50000", "--kills", "8", "--during", "30s",
		"--patience", "10s", "--seed", "33"}
	if d.forwards != nil {
		args = append(args, "--clean-brokers", strings.Join(d.forwards, ","))
	}
	cmd := exec.CommandContext(d.t.Context(), kdedup, append(append(args, "--"), command...)...)
	cmd.Env = testkit.Environment()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
