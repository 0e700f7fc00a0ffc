package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
)

// claimerEnv makes this test binary a process that claims in the given directory until it is
// killed.
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
		if _, err := s.Claim(
			context.Background(), scope, claims(batch*claimerBatch, claimerBatch),
		); err != nil {
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
		last := testkit.KillAfter(t, claimerEnv+"="+path, batches)
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
