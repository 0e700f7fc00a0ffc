// Package e2e_test runs the built binary against a real Kafka and real stores and checks the
// promise: every message ID once on the clean topic, byte for byte, in partition order.
package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

// kdedup is the kdedup that the tests run.
var kdedup string

// atATime is how many tests run side by side, each with a deployment of its own: most of them wait
// for the group, for ends of transactions and for restarts, so the number of processors is no
// measure.
const atATime = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	testkit.EachRun()
	if err := flag.Set("test.parallel", atATime); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	directory, err := os.MkdirTemp("", "kdedup-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	kdedup = filepath.Join(directory, "kdedup")
	build := exec.Command("go", "build", "-o", kdedup, "github.com/kdedup/kdedup/cmd/kdedup")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build kdedup: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, append(testkit.ToxiproxyLeaks(), goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(directory)
		os.Exit(code)
	}))...)
}
