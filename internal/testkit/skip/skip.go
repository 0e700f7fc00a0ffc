// Package skip ends the tests that lack something of the machine: a program, a server, a browser.
// It words the reason so that cmd/gotest finds it in the output and lists it at the end of a run.
package skip

import (
	"os"
	"testing"
)

// NotTested begins the reason. A test that runs in part logs such a line for the part that it
// leaves out.
const NotTested = "SKIPPED, not tested: "

// RunEnv has another value in each run of `make test`. Go's cache takes no earlier result of a
// package whose tests have read it: see testkit.EachRun.
const RunEnv = "KDEDUP_TEST_RUN"

// Missing skips the test. With CI=true it fails instead, so that no build passes by testing
// nothing. The reason names what is missing and how to get it. The next run looks again.
func Missing(t testing.TB, reason string) {
	t.Helper()
	_ = os.Getenv(RunEnv)
	if Forbidden() {
		t.Fatalf("%s; with CI=true no test may be skipped", reason)
	}
	t.Skipf("%s%s", NotTested, reason)
}

// Forbidden says that a test must fail instead of leaving something out.
func Forbidden() bool { return os.Getenv("CI") == "true" }

// LeftToProof begins the reason of tests that only `make proof` runs.
const LeftToProof = "left to make proof"

// Proof skips a test that takes too long for every change.
func Proof(t testing.TB) {
	t.Helper()
	t.Skip(LeftToProof)
}
