package e2e_test

import "testing"

// The process is killed at every point of its work, on a Kafka in this process and the embedded
// store, at the first time that it is reached and at a later one. Then the same instance goes on.
func TestACrashAtEveryPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("several hundred processes are not for -short")
	}
	t.Parallel() // with its twin on real servers, which mostly waits
	const atATime, records = 16, 3000
	side(t, atATime, crashCases(embedded, all), func(t *testing.T, c crashCase) {
		c.run(t, inProcess(t), records)
	})
}
