package servers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestRunCommandHandsSignalsOn(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command("sh", "-c", "trap 'exit 5' TERM; touch "+ready+
		"; while :; do sleep 0.05; done")
	signals := make(chan os.Signal, 1)
	done := make(chan error, 1)
	go func() { done <- RunCommand(cmd, signals) }()
	testkit.Eventually(t, time.Minute, "the start of the command", func() bool {
		_, err := os.Stat(ready)
		return err == nil
	})
	signals <- syscall.SIGTERM
	exit, ok := errors.AsType[*exec.ExitError](<-done)
	if !ok || exit.ExitCode() != 5 {
		t.Fatalf("got %v, want exit code 5", exit)
	}
}

func TestRunCommandReportsACommandThatDoesNotStart(t *testing.T) {
	if err := RunCommand(exec.Command("/no/such/command"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
}
