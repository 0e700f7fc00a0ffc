package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// The test binary plays other programs in some tests; they start it under these names.
const (
	starterName = "starter" // a process that starts a child, see process_test.go
	dockerName  = "docker"  // a container engine, see container_test.go
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case starterName:
		exit(playStarter())
	case dockerName:
		exit(playDocker(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// linkTestBinary makes this test binary startable under another name and returns its path.
func linkTestBinary(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}
