package e2e_test

import (
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The process is killed at every point of its work, on a Kafka in this process and the embedded
// store, at the first time that it is reached and at a later one. Then the same instance goes on.
// Every change is tested with one crash at each point and delivery; all of them are a proof.
func TestACrashAtEveryPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred processes are not for -short")
	}
	t.Parallel() // with its twin on real servers, which mostly waits
	const width, records = 16, 3000
	cases := testkit.Share(t, crashCases(embedded, all), crashCases(embedded, last))
	side(t, width, cases, func(t *testing.T, c crashCase) {
		c.run(t, inProcess(t), records)
	})
}
