package e2e_test

import "testing"

// The process is killed at every point of its work, on a real Kafka and a real Cassandra, in a batch
// that is not the first where the point allows it. Then the same instance goes on.
func TestACrashAtEveryPointOnRealServers(t *testing.T) {
	t.Parallel()
	const atATime, records = 6, 1500
	realServers(t)
	side(t, atATime, crashCases(cassandra, last), func(t *testing.T, c crashCase) {
		c.run(t, realServers(t), records)
	})
}
