package e2e_test

import (
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The process is killed at every point of its work, on a real Kafka and a real Cassandra, in a
// batch that is not the first where the point allows it. Then the same instance goes on. Every
// change is tested with the points at which a transaction is decided.
func TestACrashAtEveryPointOnRealServers(t *testing.T) {
	t.Parallel()
	const width, records = 6, 1500
	realServers(t)
	cases := crashCases(cassandra, last)
	side(t, width, testkit.Share(t, cases, decisive(cases)), func(t *testing.T, c crashCase) {
		c.run(t, realServers(t), records)
	})
}

// decisive are the cases in which the servers, and not the process, know what came of a batch.
func decisive(cases []crashCase) (some []crashCase) {
	points := map[string]bool{
		"bucket-claimed": true, "produce-sent": true, "end-txn-sent": true,
		"txn-offset-commit-sent": true, "offset-commit-sent": true,
	}
	for _, c := range cases {
		if points[c.crashes[len(c.crashes)-1].point] {
			some = append(some, c)
		}
	}
	return some
}
