package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func optionsFor(t *testing.T, host string) postgres.Options {
	return postgres.Options{
		Hosts: []string{host}, Database: "postgres", Username: "postgres",
		Schema: testkit.Schema(t), Table: "processed_messages",
		Timeout: 20 * time.Second, Connections: 4, BatchClaims: 300,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// startServer starts a server of the test's own.
func startServer(t *testing.T, o servers.PostgresOptions) *servers.Server {
	t.Helper()
	servers.NeedPostgres(t)
	s, err := servers.StartPostgres(t.Context(), o)
	return servers.ForTest(t, s, err)
}

// create makes a test's own schema, which goes with the test.
func create(t *testing.T, o postgres.Options) {
	t.Helper()
	if err := postgres.Setup(t.Context(), o, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	host, schema := o.Hosts[0], o.Schema
	t.Cleanup(func() { execute(t, connect(t, host), "DROP SCHEMA "+schema+" CASCADE") })
}

func open(t *testing.T, o postgres.Options) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), o, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// connect is a session beside the store's, as an operator has it.
func connect(t *testing.T, host string) *pgx.Conn {
	t.Helper()
	ctx := context.Background() // cleanups use it, too
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+host+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string, arguments ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string, arguments ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), sql, arguments...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// Every behaviour has a store of its own that sweeps all the time and reaches the server through a
// proxy that can lose an answer.
func TestConformance(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, postgres.Options){
		"as setup makes it":   func(*testing.T, postgres.Options) {},
		"partitioned by hash": partition,
	} {
		t.Run(name, func(t *testing.T) {
			options := optionsFor(t, testkit.Postgres(t))
			options.SweepInterval = 100 * time.Millisecond
			create(t, options)
			prepare(t, options)
			storetest.Run(t, func(t *testing.T) dedup.Store { return openProxied(t, options) },
				storetest.Features{
					Reopen: func(t *testing.T, s dedup.Store) dedup.Store {
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
						return openProxied(t, options)
					},
					Ambiguous: func(_ *testing.T, s dedup.Store) {
						s.(*proxied).proxy.LoseNext(isInserted)
					},
					LongestID: 511,
				})
		})
	}
}

// partition replaces the table by one of four parts, as an operator may.
func partition(t *testing.T, o postgres.Options) {
	conn := connect(t, o.Hosts[0])
	execute(t, conn, "SET search_path = "+o.Schema)
	execute(t, conn, "CREATE TABLE parts (LIKE processed_messages INCLUDING ALL) PARTITION BY "+
		"HASH (message_id)")
	for i := range 4 {
		execute(t, conn,
			fmt.Sprintf("CREATE TABLE part%d PARTITION OF parts FOR VALUES WITH (MODULUS 4, "+
				"REMAINDER %d)", i, i))
	}
	execute(t, conn, "DROP TABLE processed_messages")
	execute(t, conn, "ALTER TABLE parts RENAME TO processed_messages")
}

// proxied is a store behind a proxy of its own.
type proxied struct {
	*postgres.Store
	proxy *testkit.Proxy
}

func openProxied(t *testing.T, o postgres.Options) *proxied {
	t.Helper()
	p := testkit.StartProxy(t, o.Hosts[0])
	o.Hosts = []string{p.Addr()}
	return &proxied{open(t, o), p}
}

// isInserted: the server tells that an INSERT was done, and has committed it by then.
func isInserted(answer []byte) bool { return bytes.Contains(answer, []byte("INSERT 0 ")) }
