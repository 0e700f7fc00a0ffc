// Package chaos_test runs kdedup processes on a real Kafka broker, with their claims in a real
// Cassandra cluster or in a claim log on that broker. It disturbs everything at once by a schedule
// that a seed decides, and checks the promise at the end: every message ID once on the clean topic,
// byte for byte, in partition order.
//
// It is set up by environment variables, which `make chaos` and `make proof` fill:
//
//	CHAOS_SEED       which schedule; without it nothing is disturbed
//	CHAOS_SECONDS    how long the faults last, all deliveries together; 90 by default
//	CHAOS_DELIVERY   exactly_once, at_least_once, or both with a comma, as by default
//	CHAOS_RATE       records a second; 2000 by default
//	CHAOS_STORE      where the claims are: cassandra, as by default, cassandra-log or kafka
//	CHAOS_APART      1: the output is on another broker, of a cluster of its own; 0: it is not. By default the seed says
//	                 so, of storms with the claims in Kafka
//	CHAOS_KEEP       what each process keeps of a claim log: all, or shared; only: two keepers without lanes,
//	                 and lanes that keep nothing; none: one such keeper. By default the seed draws it
//	CHAOS_COMMITLOG  commitlog_sync of the nodes: batch (the default), or periodic: then no two nodes are killed
//	CHAOS_SETTINGS   a line for the topic's entry in the configuration, such as group_protocol: consumer
//	CHAOS_DIR        keeps all logs and data there
//	CHAOS_NODES      runs TestAKilledNodeAndALateOne, which needs a cluster of its own
package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

// kdedup is the binary that the test runs.
var kdedup string

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // some of toxiproxy's lines go around its logger
	directory, err := os.MkdirTemp("", "kdedup-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	kdedup = filepath.Join(directory, "kdedup")
	goleak.VerifyTestMain(m, append(testkit.ToxiproxyLeaks(), goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(directory)
		os.Exit(code)
	}))...)
}

// build makes the binary; the tests of the schedule do not need it.
func build(t *testing.T) {
	t.Helper()
	testkit.EachRun()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", kdedup,
		"github.com/kdedup/kdedup/cmd/kdedup")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build kdedup: %v\n%s", err, out)
	}
}
