// Package linearizability_test asks a checker that is not ours, github.com/anishathalye/porcupine,
// whether the claims, renewals, look-ups and releases of each store are linearizable, as the
// contract of dedup.Store says. Clients in several sessions work on few hot IDs while connections
// break, answers vanish, requests come late, and servers stand still or are killed. What a call may
// have done is in the history as an operation that has its effect later, or never.
package linearizability_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
)

// group is that of all scopes. Half of the calls claim for the ttl, the others for half of it: so a
// copy with the longer one always has something to renew, and one with the shorter one nothing.
const (
	group = "linearizability"
	ttl   = 48 * time.Hour
	short = ttl / 2
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each round has a scope of its own, and is checked when it ends. So a violation is found soon, and
// the searches stay small.
const (
	roundLength = 10 * time.Second
	settleLimit = time.Minute
)

// length is a minute for each store, or KDEDUP_LINEARIZABILITY_SECONDS; with -short it is a second.
func length(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("KDEDUP_LINEARIZABILITY_SECONDS"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("KDEDUP_LINEARIZABILITY_SECONDS: %v", err)
		}
		return time.Duration(seconds) * time.Second
	}
	if testing.Short() {
		return time.Second
	}
	return time.Minute
}

// subject is a store under test.
type subject struct {
	sessions []dedup.Store // as of several processes
	faults   *faults
}

// All stores are tested at the same time, more than -parallel allows: they mostly wait.
func TestClaimsAreLinearizable(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for name, open := range subjects {
		all.Go(func() {
			t.Run(name, func(t *testing.T) { open(t).test(t) })
		})
	}
}

func (s subject) test(t *testing.T) {
	operations := 0
	for begin, round := time.Now(), 0; round == 0 || time.Since(begin) < length(t); round++ {
		history := s.round(t, round, min(roundLength, length(t)))
		operations += len(history)
		if err := check(history); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d operations; faults: %v", operations, s.faults)
}

// round lets clients work, waits until the store is whole, and returns what was seen.
func (s subject) round(t *testing.T, number int, length time.Duration) []*operation {
	t.Helper()
	w := &workload{
		t: t, sessions: s.sessions, began: time.Now(),
		scope: dedup.Scope{
			ConsumerGroup: group, Name: fmt.Sprint("round-", number),
			TTL: ttl, Buckets: 4, Extractor: "key", Sliding: true,
		},
	}
	for _, session := range s.sessions {
		w.register(session)
	}
	working, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { s.faults.run(working, t) })
	for n := range clients {
		all.Go(func() { w.client(working, n) })
	}
	all.Wait()
	settling, stop := context.WithTimeout(t.Context(), settleLimit)
	defer stop()
	if err := w.settle(settling); err != nil {
		t.Fatal(err)
	}
	return w.operations
}
