package linearizability_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// The reduced search must find what the whole one does: here on short random histories, most of
// which nobody could have seen.
func TestTheReducedSearchFindsWhatTheWholeOneFinds(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	legal := 0
	for range n {
		history := randomHistory()
		want := porcupine.CheckOperationsTimeout(model, whole(history), 0)
		if want == porcupine.Ok {
			legal++
		}
		if got := porcupine.CheckOperationsTimeout(model, reduce(history), 0); got != want {
			var lines []string
			for _, o := range history {
				lines = append(lines, o.String())
			}
			t.Fatalf("reduced %v, whole %v:\n%s", got, want, strings.Join(lines, "\n"))
		}
	}
	if legal < n/50 || legal > n-n/50 {
		t.Errorf("%d of %d histories are linearizable: nothing is compared", legal, n)
	}
}

func randomHistory() []*operation {
	claims := 1 + rand.IntN(4)
	history := make([]*operation, 0, claims+5)
	for i := range claims + rand.IntN(6) {
		o := &operation{call: rand.Int64N(30), client: i}
		o.end = o.call + rand.Int64N(12)
		switch {
		case i < claims:
			o.attempt, o.owner = int32(i+1), int64(1+i%3)
			o.result, o.long = result(rand.IntN(3)), rand.IntN(2) == 0
		case rand.IntN(2) == 0:
			o.action, o.result = lookingUp, []result{open, taken, taken, free}[rand.IntN(4)]
		default:
			o.action, o.result = releasing, result(rand.IntN(2))
		}
		switch {
		case o.result == taken:
			o.hold(int32(1 + rand.IntN(claims)))
			o.short = o.action == lookingUp && rand.IntN(3) == 0
		case o.result == done && o.action == claiming:
			o.hold(o.attempt)
		}
		history = append(history, o)
	}
	return history
}

// hold makes an attempt the answer.
func (o *operation) hold(attempt int32) {
	o.holder, o.holderOwner, o.claimedAt = attempt, int64(1+(attempt-1)%3), int64(attempt)
}

func TestTheShortestViolationIsShown(t *testing.T) {
	history := []*operation{{action: claiming, result: done, attempt: 1, owner: 1, call: 1, end: 2,
		holder: 1, holderOwner: 1, claimedAt: 7}}
	for n := range int64(20) {
		history = append(history, &operation{action: lookingUp, result: taken, call: 3 + 2*n,
			end: 4 + 2*n, holder: 1, holderOwner: 1, claimedAt: 7})
	}
	history[9] = &operation{action: lookingUp, result: free, call: history[9].call,
		end: history[9].end}
	err := check(history)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the last of %d operations", 10)) ||
		!strings.HasSuffix(err.Error(), "look up: free") {
		t.Errorf("got %v", err)
	}
}
