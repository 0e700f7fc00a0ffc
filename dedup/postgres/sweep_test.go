package postgres_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/internal/testkit"
)

const countRows = "SELECT count(*) FROM processed_messages"

// expire lets the claims of the IDs 0 … n-1 have ended.
func expire(t *testing.T, o postgres.Options, store dedup.Store, n int) {
	t.Helper()
	mustClaim(t, store, scope, claims(0, n, 1))
	execute(t, connect(t, o.Hosts[0]), "UPDATE "+o.Schema+
		".processed_messages SET expires_at = expires_at - interval '2 hours'")
}

func TestTheSweepDeletesWhatHasExpired(t *testing.T) {
	const n = 2*postgres.SweepBatch + 500
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	idle := open(t, options)
	expire(t, options, idle, n)
	mustClaim(t, idle, scope, claims(n, 700, 1))
	options.SweepInterval = 10 * time.Millisecond
	store, conn := open(t, options), connect(t, options.Hosts[0])
	execute(t, conn, "SET search_path = "+options.Schema)
	testkit.Eventually(t, patience, "700 rows", func() bool {
		return query[int](t, conn, countRows) == 700
	})
	testkit.Eventually(t, patience, "the count of deleted claims", func() bool {
		return testutil.ToFloat64(store.SweptClaims()) == n
	})
	for _, a := range mustClaim(t, idle, scope, claims(n, 700, 2)) {
		if a.Outcome != dedup.Exists || a.Owner.Partition != 1 {
			t.Fatalf("a claim that holds: %+v", a)
		}
	}
}

// A server whose clock is ahead deletes nothing while this process's clock does not say the same.
func TestTheSweepBelievesNoClockAlone(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	store := open(t, options)
	expire(t, options, store, 100) // an hour ago, says the server
	store.SetClock(func() time.Time { return time.Now().Add(-2 * time.Hour) })
	if n, err := store.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("by the server's clock alone %d were deleted, %v", n, err)
	}
	store.SetClock(time.Now)
	if n, err := store.Sweep(t.Context()); n != 100 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
}

func TestOfAllProcessesOneSweeps(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	store, other := open(t, options), connect(t, options.Hosts[0])
	expire(t, options, store, 100)
	execute(t, other, "BEGIN")
	execute(t, other, "SELECT pg_advisory_xact_lock($1)", store.SweepLock())
	if n, err := store.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("while another one sweeps: %d deleted, %v", n, err)
	}
	execute(t, other, "COMMIT")
	if n, err := store.Sweep(t.Context()); n != 100 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// Rows that a claim holds are left alone, and nobody waits for anybody.
func TestTheSweepStepsAsideForClaims(t *testing.T) {
	const n = 1500
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	options.Timeout = 5 * time.Second
	store, other := open(t, options), connect(t, options.Hosts[0])
	expire(t, options, store, n)
	execute(t, other, "SET search_path = "+options.Schema)
	execute(t, other, "BEGIN")
	execute(t, other, "UPDATE processed_messages SET expires_at = now() + interval '1 hour' "+
		"WHERE owner_offset % 3 = 0")
	if deleted, err := store.Sweep(t.Context()); deleted != n-n/3 || err != nil {
		t.Errorf("%d deleted, %v; want %d", deleted, err, n-n/3)
	}
	execute(t, other, "COMMIT")
	if left := query[int](t, other, countRows); left != n/3 {
		t.Errorf("%d rows are left, want %d", left, n/3)
	}
	if deleted, err := store.Sweep(t.Context()); deleted != 0 || err != nil {
		t.Errorf("of claims that hold again %d were deleted, %v", deleted, err)
	}
}

// Claims of new, known and expired IDs go on while sweeps delete: each ID ends with one owner.
func TestClaimsGoOnWhileASweepDeletes(t *testing.T) {
	const n, rounds = 3000, 5
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	store := open(t, options)
	for round := range rounds {
		expire(t, options, store, n)
		swept := make(chan error, 1)
		go func() {
			_, err := store.Sweep(t.Context())
			swept <- err
		}()
		answers := claimAtOnce(t, store, scope, 4, n)
		if err := <-swept; err != nil {
			t.Fatal(err)
		}
		wantOneWinnerEach(t, answers, n)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if retries := testutil.ToFloat64(store.Retries()); retries != 0 {
		t.Errorf("%v statements were undone", retries)
	}
}
