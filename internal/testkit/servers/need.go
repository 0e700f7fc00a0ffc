package servers

import (
	"os"
	"testing"
)

// Need skips a test where it cannot start servers that it may stop, kill and pause, which a container
// engine does not give. With CI=true it fails instead.
func Need(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("real servers are not for -short")
	}
	_, err := FindJava(t.Context())
	if err == nil {
		_, err = FindMaven()
	}
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("no servers that a test may stop, and with CI=true no test may be skipped: %v", err)
	default:
		t.Skipf("SKIPPED, not tested: no servers that a test may stop: %v", err)
	}
}
