package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program that a test needs; pkg is the Debian package that has it.
func Program(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("there is no %s, and with CI=true no test may be skipped: install it, as in: apt-get install %s", name, pkg)
	default:
		t.Skipf("SKIPPED, not tested: there is no %s; install it, as in: apt-get install %s", name, pkg)
	}
	return ""
}
