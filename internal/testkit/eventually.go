package testkit

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

const (
	eventuallyEvery = 10 * time.Millisecond
	sharedMachine   = 3 // times slower than the one on which the timeouts were chosen
)

// Eventually returns as soon as cond holds, and fails the test when it does not within timeout.
// what names the condition as a noun phrase: "three records on the clean topic". cond is never
// called twice at a time, and always by the caller's goroutine, which must be the test's own. With
// CI=true it waits longer: what is slow there is the machine, and only a failure costs that time.
func Eventually(t testing.TB, timeout time.Duration, what string, cond func() bool) {
	t.Helper()
	if skip.Forbidden() {
		timeout *= sharedMachine
	}
	tick := time.NewTicker(eventuallyEvery)
	defer tick.Stop()
	for deadline := time.Now().Add(timeout); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", timeout, what)
		}
	}
}
