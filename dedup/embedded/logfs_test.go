package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fillDiskEnv makes this test binary a process whose disk fills up.
const fillDiskEnv = "KDEDUP_EMBEDDED_FILL_DISK"

// claimUntilFull lets no new log file be made once the store is open.
func claimUntilFull() {
	var full atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) {
			return syscall.ENOSPC
		}
		return nil
	}))
	s, err := Open(Options{Path: "data", FS: disk, SweepInterval: -1, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	for batch := 0; err == nil; batch++ {
		full.Store(true)
		_, err = s.Claim(context.Background(), scope, claims(batch*5000, 5000))
	}
	fmt.Fprintln(os.Stderr, "claim:", err)
	os.Exit(3)
}

func TestAFullDiskAtAChangeOfLogFilesEndsTheProcessWithAReason(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fillDiskEnv+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 {
		t.Fatalf("the process ended with %v, want exit code 1:\n%.2000s", err, &stderr)
	}
	for _, want := range []string{"make room or mend the disk, then restart", "no space left on device"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("standard error does not say %q:\n%.2000s", want, &stderr)
		}
	}
}
