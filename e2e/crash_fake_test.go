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

// The two clusters share no clock and no coordinator. At each point of a take-over and of a commit
// they know different things of what the process has done.
func TestACrashAtEveryPointBetweenTwoClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("fifty processes are not for -short")
	}
	t.Parallel()
	const width, records = 16, 3000
	cases := testkit.Share(t, crashCasesApart(all), ofTakeOver(crashCasesApart(last)))
	side(t, width, cases, func(t *testing.T, c crashCase) {
		at := inProcess(t)
		_, at.output = testkit.FakeKafka(t)
		c.run(t, at, records)
	})
}

// ofTakeOver are the cases that end a take-over half-way, or leave a transaction to one.
func ofTakeOver(cases []crashCase) (some []crashCase) {
	points := map[string]bool{"predecessor-fenced": true, "predecessor-over": true,
		"partitions-assigned": true, "partitions-begun": true, "fences-unread": true,
		"fences-read": true, "batch-polled": true, "txn-offset-commit-sent": true,
		"end-txn-unsent": true, "end-txn-sent": true, "hints-unsent": true}
	for _, c := range cases {
		if points[c.crashes[len(c.crashes)-1].point] {
			some = append(some, c)
		}
	}
	return some
}
