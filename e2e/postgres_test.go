package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// onPostgres is the real Kafka, and a schema of the test's own in the real PostgreSQL.
func onPostgres(t *testing.T) place {
	t.Helper()
	return place{brokers: testkit.Kafka(t), store: fmt.Sprintf(
		"{type: postgres, postgres: {hosts: [%q], database: postgres, username: postgres, "+
			"schema: %s}}", testkit.Postgres(t), testkit.Schema(t))}
}

// Two processes share a PostgreSQL; one is killed in mid-run and comes back.
func TestOnPostgresAKilledProcessLosesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deployAt(t, onPostgres(t), delivery, killed...)
		d.produce(100_000, 31)
		d.killInMidRun(nil)
		d.waitFor(1)
		d.mustLoseNothing()
	})
}

func TestOnPostgresTwoProcessesCleanABacklog(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		const n = 100_000
		d := deployAt(t, onPostgres(t), delivery)
		d.produce(n, 32)
		one, two := d.start("one"), d.start("two")
		d.waitFor(1)
		testkit.Eventually(t, time.Minute, "outcomes that add up to the records read", func() bool {
			return total(one.outcomes(), two.outcomes()) == n
		})
		one.stop()
		two.stop()
		d.mustBeClean()
		d.command("validate")
		d.claimByHand()
		d.command("bench", "claims", "--ids", "20000")
	})
}

// The points of this store alone: those of the lane are the same with every store.
func TestACrashBetweenTheStatementsOnPostgres(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at := onPostgres(t)
	between := slices.DeleteFunc(crashCases(postgres, all), func(c crashCase) bool {
		return c.crashes[0].point != "rows-inserted"
	})
	side(t, len(between), between, func(t *testing.T, c crashCase) { c.run(t, at, 1500) })
}
