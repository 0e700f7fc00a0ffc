package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/internal/testkit"
)

const patience = 30 * time.Second

var scope = dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 16}

// claims are by a record of the partition for the IDs from … from+n-1.
func claims(from, n int, partition int32) []dedup.Claim {
	list := make([]dedup.Claim, n)
	for i := range list {
		list[i] = dedup.Claim{
			ID: dedup.ID(fmt.Sprintf("id-%06d", from+i)),
			Owner: dedup.Coordinates{Partition: partition, Offset: int64(from + i),
				LeaderEpoch: -1},
		}
	}
	return list
}

func mustClaim(t *testing.T, s dedup.Store, scope dedup.Scope, list []dedup.Claim) []dedup.Answer {
	t.Helper()
	answers, err := s.Claim(t.Context(), scope, list)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// insertRow is what another process's claim does, in a transaction of the test.
const insertRow = `INSERT INTO processed_messages (scope, message_id, owner_topic_id, owner_partition, owner_offset, owner_epoch, fingerprint, claimed_at, expires_at)
VALUES ($1, $2, '00000000-0000-0000-0000-000000000000', 77, 7, 0, '\x00000000000000000000000000000000', now(), now() + $3 * interval '1 second')`

// waitBlocked returns when a statement of the store waits for a lock.
func waitBlocked(t *testing.T, conn *pgx.Conn, schema string) {
	t.Helper()
	testkit.Eventually(t, patience, "a claim that waits", func() bool {
		return query[int](t, conn, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type "+
			"= 'Lock' AND query LIKE '%INSERT INTO \"' || $1 || '\"%'", schema) > 0
	})
}

// A claim meets the claim of a transaction that is still open. Its own snapshot is older than the
// end of that transaction, and yet the answer is exact.
func TestAClaimThatWaitedForAnotherLearnsWhatBecameOfIt(t *testing.T) {
	for _, c := range []struct {
		name      string
		before    func(t *testing.T, conn *pgx.Conn) // commits
		meanwhile string                             // in the open transaction
		end       string
		outcome   dedup.Outcome
		partition int32
	}{
		{"it commits", nil, "claim", "COMMIT", dedup.Exists, 77},
		{"it rolls back", nil, "claim", "ROLLBACK", dedup.Applied, 1},
		{"it deletes the expired row", expired, "DELETE FROM processed_messages", "COMMIT",
			dedup.Applied, 1},
		{"it keeps the expired row", expired, "DELETE FROM processed_messages", "ROLLBACK",
			dedup.Applied, 1},
		{"it takes the expired row over", expired, "UPDATE processed_messages SET " +
			"owner_partition = 78, expires_at = now() + interval '1 hour'", "COMMIT", dedup.Exists,
			78},
		{"it releases the claim", valid, "DELETE FROM processed_messages", "COMMIT", dedup.Applied,
			1},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := optionsFor(t, testkit.Postgres(t))
			create(t, options)
			store, other, watch := open(t, options), connect(t, options.Hosts[0]),
				connect(t, options.Hosts[0])
			execute(t, other, "SET search_path = "+options.Schema)
			if c.before != nil {
				c.before(t, other)
			}
			execute(t, other, "BEGIN")
			if c.meanwhile == "claim" {
				claimRow(t, other, 3600)
			} else {
				execute(t, other, c.meanwhile)
			}
			var answers []dedup.Answer
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				answers, err = store.Claim(t.Context(), scope, claims(0, 3, 1))
			}()
			waitBlocked(t, watch, options.Schema)
			execute(t, other, c.end)
			<-done
			if err != nil {
				t.Fatal(err)
			}
			if answers[1].Outcome != c.outcome || answers[1].Owner.Partition != c.partition {
				t.Errorf("got %+v, want outcome %d of partition %d", answers[1], c.outcome,
					c.partition)
			}
			if answers[0].Outcome != dedup.Applied || answers[2].Outcome != dedup.Applied {
				t.Errorf("its neighbours: %+v", answers)
			}
		})
	}
}

func claimRow(t *testing.T, conn *pgx.Conn, seconds int) {
	t.Helper()
	execute(t, conn, insertRow, postgres.ScopeKey(scope), []byte("id-000001"), seconds)
}

func expired(t *testing.T, conn *pgx.Conn) { claimRow(t, conn, -1) }

func valid(t *testing.T, conn *pgx.Conn) { claimRow(t, conn, 3600) }

// Lanes whose batches overlap and come in opposite orders never wait for each other in a circle:
// not for new IDs, not for known ones, not for expired ones.
func TestLanesWithOverlappingBatchesDoNotDeadlock(t *testing.T) {
	const lanes, ids, rounds = 16, 2000, 3
	options := optionsFor(t, testkit.Postgres(t))
	options.Connections, options.BatchClaims = lanes, ids
	create(t, options)
	store := open(t, options)
	brief := scope
	brief.TTL = time.Second
	for round := range rounds {
		if round > 0 {
			testkit.Eventually(t, patience, "the end of all claims", func() bool {
				answer, err := store.Lookup(t.Context(), brief, claims(0, ids, 0)[ids-1].ID)
				return err == nil && answer.Outcome == dedup.Undecided
			})
		}
		current := brief
		if round == rounds-1 {
			current.TTL = time.Hour
		}
		answers := claimAtOnce(t, store, current, lanes, ids)
		if round == rounds-1 { // nothing ends any more
			wantOneWinnerEach(t, answers, ids)
		}
	}
	if n := testutil.ToFloat64(store.Retries()); n != 0 {
		t.Errorf("%v statements were undone", n)
	}
}

// claimAtOnce lets every other lane claim backwards.
func claimAtOnce(
	t *testing.T, store dedup.Store, scope dedup.Scope, lanes, ids int,
) [][]dedup.Answer {
	t.Helper()
	answers, errs := make([][]dedup.Answer, lanes), make([]error, lanes)
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			list := claims(0, ids, int32(lane))
			if lane%2 == 1 {
				slices.Reverse(list)
			}
			answers[lane], errs[lane] = store.Claim(t.Context(), scope, list)
			if lane%2 == 1 {
				slices.Reverse(answers[lane])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return answers
}

func wantOneWinnerEach(t *testing.T, answers [][]dedup.Answer, ids int) {
	t.Helper()
	for id := range ids {
		applied := 0
		for lane := range answers {
			if got := answers[lane][id]; got.Owner != answers[0][id].Owner ||
				got.Owner.Offset != int64(id) {
				t.Fatalf("id %d: owners %+v and %+v", id, answers[0][id], got)
			}
			if answers[lane][id].Outcome == dedup.Applied {
				applied++
			}
		}
		if applied != 1 {
			t.Fatalf("id %d: %d lanes applied", id, applied)
		}
	}
}

// With another isolation level the server undoes a claim that met another one, and says so: the
// claim is sent again.
func TestAStatementThatTheServerUndoesIsSentAgain(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	other, watch := connect(t, options.Hosts[0]), connect(t, options.Hosts[0])
	role := newRole(t, options, "default_transaction_isolation = 'repeatable read'")
	execute(t, other, "GRANT USAGE ON SCHEMA "+options.Schema+" TO "+role)
	execute(t, other, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+
		options.Schema+" TO "+role)
	options.Username = role
	store := open(t, options)
	execute(t, other, "SET search_path = "+options.Schema)
	execute(t, other, "BEGIN")
	valid(t, other)
	done := make(chan []dedup.Answer, 1)
	go func() {
		answers, err := store.Claim(t.Context(), scope, claims(0, 3, 1))
		if err != nil {
			t.Error(err)
		}
		done <- answers
	}()
	waitBlocked(t, watch, options.Schema)
	execute(t, other, "COMMIT")
	if answers := <-done; answers[1].Outcome != dedup.Exists || answers[1].Owner.Partition != 77 ||
		answers[0].Outcome != dedup.Applied {
		t.Errorf("got %+v", answers)
	}
	if n := testutil.ToFloat64(store.Retries()); n != 1 {
		t.Errorf("%v statements were sent again, want 1", n)
	}
}

// newRole makes a login role with a setting; it goes with the test.
func newRole(t *testing.T, o postgres.Options, setting string) string {
	t.Helper()
	conn := connect(t, o.Hosts[0])
	execute(t, conn, "CREATE ROLE "+o.Schema+" LOGIN")
	t.Cleanup(func() {
		conn := connect(t, o.Hosts[0])
		execute(t, conn, "DROP OWNED BY "+o.Schema)
		execute(t, conn, "DROP ROLE "+o.Schema)
	})
	if setting != "" {
		execute(t, conn, "ALTER ROLE "+o.Schema+" SET "+setting)
	}
	return o.Schema
}

// IDs that are longer than an index entry are known by their beginning and their hash.
func TestLongIDsAreToldApart(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	store := open(t, options)
	var list []dedup.Claim
	for n, size := range []int{511, 512, 513, 4096, 1 << 20} {
		for _, end := range []string{"a", "b"} {
			id := dedup.ID(incompressible(size-1) + end)
			list = append(list, dedup.Claim{ID: id, Owner: dedup.Coordinates{Offset: int64(n)}})
		}
	}
	// What is stored for the ID of 512 bytes, as an ID of its own.
	stored := query[[]byte](t, connect(t, options.Hosts[0]), "SELECT $1::bytea",
		postgres.KeyOf(list[2].ID))
	list = append(list, dedup.Claim{ID: dedup.ID(stored), Owner: dedup.Coordinates{Offset: 99}})
	for i, a := range mustClaim(t, store, scope, list) {
		if a.Outcome != dedup.Applied {
			t.Errorf("claim %d, %d bytes: %+v", i, len(list[i].ID), a)
		}
	}
	for _, c := range list {
		if a, err := store.Lookup(t.Context(), scope, c.ID); err != nil || a.Owner != c.Owner {
			t.Errorf("%d bytes: %+v, %v", len(c.ID), a, err)
		}
	}
}

// incompressible is text of pseudo-random bytes.
func incompressible(n int) string {
	var b strings.Builder
	for x := uint32(1); b.Len() < n; x = x*1664525 + 1013904223 {
		b.WriteByte(byte(x >> 24))
	}
	return b.String()
}

func TestRowsShowTheirOwnerInSQL(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	store, conn := open(t, options), connect(t, options.Hosts[0])
	if err := store.Register(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	claim := dedup.Claim{ID: "order-1", Owner: dedup.Coordinates{TopicID: [16]byte{15: 1},
		Partition: 3, Offset: 42, LeaderEpoch: 5}}
	mustClaim(t, store, scope, []dedup.Claim{claim})
	execute(t, conn, "SET search_path = "+options.Schema)
	got := query[string](t, conn, `SELECT concat_ws(' ', consumer_group, topic, convert_from(message_id, 'UTF8'), owner_topic_id, owner_partition,
    owner_offset, owner_epoch, round(extract(epoch FROM expires_at - claimed_at)))
FROM processed_messages JOIN dedup_scopes USING (scope)`)
	if want := "g t order-1 00000000-0000-0000-0000-000000000001 3 42 5 3600"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASilentServerLeavesClaimsUndecided(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	options.Timeout = time.Second
	store, other := open(t, options), connect(t, options.Hosts[0])
	execute(t, other, "BEGIN")
	execute(t, other, "LOCK TABLE "+options.Schema+".processed_messages")
	answers, err := store.Claim(t.Context(), scope, claims(0, 3, 1))
	if !errors.Is(err, context.DeadlineExceeded) ||
		!strings.HasPrefix(err.Error(), "claim 3 ids: postgres: ") {
		t.Errorf("got %v", err)
	}
	for _, a := range answers {
		if a != (dedup.Answer{}) {
			t.Errorf("got %+v, want undecided", a)
		}
	}
	execute(t, other, "COMMIT")
	testkit.Eventually(t, patience, "decided claims", func() bool {
		answers, err = store.Claim(t.Context(), scope, claims(0, 3, 1))
		return err == nil
	})
	for i, a := range answers {
		if a.Outcome == dedup.Undecided || a.Owner != claims(0, 3, 1)[i].Owner {
			t.Errorf("got %+v", a)
		}
	}
}
