package testkit

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// Program returns the path of a program that a test needs; pkg is the Debian package that has it.
// The test runs each time.
func Program(t testing.TB, name, pkg string) string {
	t.Helper()
	EachRun()
	path, err := exec.LookPath(name)
	if err != nil {
		skip.Missing(t, fmt.Sprintf("there is no %s: make packages installs it (Debian: %s)", name,
			pkg))
	}
	return path
}
