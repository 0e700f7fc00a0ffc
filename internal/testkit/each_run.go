package testkit

import (
	"os"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// EachRun has the tests of a package run each time. Go's cache knows the package's own code, the
// variables that its tests read and the files of the module that they open. It does not see what
// another program reads that they start: the built binary, or a `go list`.
func EachRun() { _ = os.Getenv(skip.RunEnv) }
