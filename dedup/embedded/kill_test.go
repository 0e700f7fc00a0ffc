package embedded

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/kdedup/kdedup/dedup"
)

// claimerEnv makes this test binary a process that claims in the given directory until it is killed.
const claimerEnv = "KDEDUP_EMBEDDED_CLAIMER"

const claimerBatch = 200

// claimForever prints the number of every batch that was answered.
func claimForever(path string) {
	s, err := Open(Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for batch := 0; ; batch++ {
		if _, err := s.Claim(context.Background(), scope, claims(batch*claimerBatch, claimerBatch)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(batch)
	}
}

// What a killed process had answered stands, at whatever moment the kill came.
func TestAKilledProcessForgetsNoAnsweredClaim(t *testing.T) {
	path := t.TempDir()
	for _, batches := range []int{1, 40, 150} {
		last := killAfter(t, path, batches)
		s := mustOpen(t, Options{Path: path, SweepInterval: -1})
		for i, a := range mustClaim(t, s, claims(0, (last+1)*claimerBatch)) {
			if a.Outcome != dedup.Exists || a.Owner.Offset != int64(i) {
				t.Errorf("claim %d of %d answered batches: %+v", i, last+1, a)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter returns the last batch that the process answered before it died.
func killAfter(t *testing.T, path string, batches int) (last int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), claimerEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	last = -1
	for lines.Scan() {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if last == batches {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || last < batches {
		t.Fatalf("the process ended after batch %d: %v", last, err)
	}
	return last
}
