package postgres_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/postgres"
	"github.com/kdedup/kdedup/idempotency/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Where the process of a killed owner finds its store.
const (
	addressEnv = "KDEDUP_TEST_OWNER_POSTGRES"
	tableEnv   = "KDEDUP_TEST_OWNER_POSTGRES_TABLE"
)

func TestMain(m *testing.M) {
	storetest.OwnerProcess(func() (idempotency.Store, error) {
		pool, err := connect(context.Background(), os.Getenv(addressEnv))
		if err != nil {
			return nil, err
		}
		return postgres.Open(context.Background(), pool,
			postgres.Options{Table: os.Getenv(tableEnv)})
	})
	goleak.VerifyTestMain(m)
}

func connect(ctx context.Context, address string) (*pgxpool.Pool, error) {
	return pgxpool.New(ctx, "postgres://postgres@"+address+"/postgres?pool_max_conns=16")
}

// ownTable returns a pool, and options with a table that no other test uses. It is dropped at the
// end.
func ownTable(t *testing.T) (*pgxpool.Pool, postgres.Options) {
	t.Helper()
	pool, err := connect(t.Context(), testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	schema := testkit.Keyspace(t)
	if _, err := pool.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	return pool, postgres.Options{Table: schema + ".keys", SweepInterval: -1}
}

func open(t *testing.T, pool *pgxpool.Pool, o postgres.Options) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), pool, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func setUp(t *testing.T) (*pgxpool.Pool, postgres.Options) {
	t.Helper()
	pool, o := ownTable(t)
	for range 2 { // it may be repeated
		if err := postgres.Setup(t.Context(), pool, o); err != nil {
			t.Fatal(err)
		}
	}
	return pool, o
}

func TestConformance(t *testing.T) {
	pool, o := setUp(t)
	store := open(t, pool, o)
	storetest.Run(t, func(*testing.T) idempotency.Store { return store }, storetest.Features{
		ExpiryGranularity: time.Millisecond,
		Reopen: func(t *testing.T, _ idempotency.Store) idempotency.Store {
			other, err := connect(t.Context(), testkit.Postgres(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(other.Close)
			return open(t, other, o)
		},
		Owner: &storetest.Owner{Env: []string{addressEnv + "=" + testkit.Postgres(t),
			tableEnv + "=" + o.Table}},
	})
}

func TestOpenNamesTheRemedyOfAMissingTable(t *testing.T) {
	pool, o := ownTable(t)
	_, err := postgres.Open(t.Context(), pool, o)
	if err == nil || !strings.Contains(err.Error(), "create it with postgres.Setup") {
		t.Errorf("got %v", err)
	}
}

func TestExpiredRecordsAreDeleted(t *testing.T) {
	pool, o := setUp(t)
	o.SweepInterval = 50 * time.Millisecond
	store := open(t, pool, o)
	for id, ttl := range map[string]time.Duration{"brief": time.Second, "also brief": time.Second,
		"long": time.Hour} {
		record := idempotency.Record{Version: idempotency.Version{Revision: 1},
			State: idempotency.Started}
		if _, done, err := store.Swap(
			t.Context(), idempotency.Key{ID: id}, idempotency.Version{}, record, ttl,
		); err != nil || !done {
			t.Fatal(err, done)
		}
	}
	var ids []string
	testkit.Eventually(t, 30*time.Second, "one row", func() bool {
		rows, err := pool.Query(t.Context(), "SELECT encode(id, 'escape') FROM "+o.Table)
		if err != nil {
			t.Fatal(err)
		}
		if ids, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
		return len(ids) == 1
	})
	if ids[0] != "long" {
		t.Errorf("%q is left", ids)
	}
}

// A server whose clock is ahead deletes nothing while this process's clock does not say the same.
func TestTheSweepBelievesNoClockAlone(t *testing.T) {
	pool, o := setUp(t)
	store := open(t, pool, o)
	record := idempotency.Record{Version: idempotency.Version{Revision: 1},
		State: idempotency.Started}
	if _, done, err := store.Swap(
		t.Context(), idempotency.Key{ID: "1"}, idempotency.Version{}, record, time.Hour,
	); err != nil || !done {
		t.Fatal(err, done)
	}
	if _, err := pool.Exec(
		t.Context(), "UPDATE "+o.Table+" SET expires_at = now() - interval '1 hour'",
	); err != nil {
		t.Fatal(err)
	}
	store.SetClock(func() time.Time { return time.Now().Add(-2 * time.Hour) })
	if n, err := store.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("by the server's clock alone %d were deleted, %v", n, err)
	}
	store.SetClock(time.Now)
	if n, err := store.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
}

func TestAnOperatorCanReadTheTable(t *testing.T) {
	pool, o := setUp(t)
	executor, err := idempotency.New(open(t, pool, o), idempotency.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := idempotency.Key{Namespace: "payments", ID: "1"}
	_, err = executor.Execute(t.Context(), key, idempotency.HashOf(nil),
		func(context.Context) ([]byte, error) {
			return []byte("receipt"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	var namespace, id, state, response string
	var left time.Duration
	err = pool.QueryRow(t.Context(),
		`SELECT convert_from(namespace, 'UTF8'), convert_from(id, 'UTF8'), state, convert_from(response, 'UTF8'), expires_at - changed_at FROM `+o.Table).
		Scan(&namespace, &id, &state, &response, &left)
	if err != nil || namespace != "payments" || id != "1" || state != "completed" ||
		response != "receipt" || left != 24*time.Hour {
		t.Errorf("%v: %q %q %q %q %v", err, namespace, id, state, response, left)
	}
}
