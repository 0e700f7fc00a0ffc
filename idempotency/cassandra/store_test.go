package cassandra_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocql/gocql"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/cassandra"
	"github.com/kdedup/kdedup/idempotency/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Where the process of a killed owner finds its store.
const (
	hostEnv     = "KDEDUP_TEST_OWNER_CASSANDRA"
	keyspaceEnv = "KDEDUP_TEST_OWNER_CASSANDRA_KEYSPACE"
)

func TestMain(m *testing.M) {
	storetest.OwnerProcess(func() (idempotency.Store, error) {
		session, err := connect(os.Getenv(hostEnv), os.Getenv(keyspaceEnv))
		if err != nil {
			return nil, err
		}
		return cassandra.Open(context.Background(), session, cassandra.Options{})
	})
	goleak.VerifyTestMain(m)
}

func connect(host, keyspace string) (*gocql.Session, error) {
	cluster := gocql.NewCluster(host)
	cluster.Keyspace = keyspace
	cluster.Consistency = gocql.LocalQuorum
	cluster.Timeout, cluster.ConnectTimeout = 20*time.Second, 20*time.Second
	// The driver sleeps out this interval even after Close, which is a leak to the check for leaks.
	cluster.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 3,
		Interval: 50 * time.Millisecond}
	return cluster.CreateSession()
}

func session(t *testing.T, host, keyspace string) *gocql.Session {
	t.Helper()
	s, err := connect(host, keyspace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// keyspace is the test's own.
func keyspace(t *testing.T, host string) string {
	t.Helper()
	name := testkit.Keyspace(t)
	s := session(t, host, "")
	create := "CREATE KEYSPACE " + name +
		" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
	if err := s.Query(create).WithContext(t.Context()).Exec(); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t *testing.T, s *gocql.Session, o cassandra.Options) *cassandra.Store {
	t.Helper()
	store, err := cassandra.Open(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestConformance(t *testing.T) {
	for _, row := range []struct {
		name    string
		host    func(testing.TB) string
		options cassandra.Options
	}{
		{"paxos v2", testkit.Cassandra, cassandra.Options{}},
		{"paxos v1", testkit.CassandraV1,
			cassandra.Options{Serial: gocql.Serial, Commit: gocql.Quorum}},
	} {
		t.Run(row.name, func(t *testing.T) {
			host := row.host(t)
			space := keyspace(t, host)
			s := session(t, host, space)
			for range 2 { // it may be repeated
				if err := cassandra.Setup(t.Context(), s, row.options); err != nil {
					t.Fatal(err)
				}
			}
			store := open(t, s, row.options)
			storetest.Run(t, func(*testing.T) idempotency.Store { return store },
				storetest.Features{
					ExpiryGranularity: 2 * time.Second,
					Reopen: func(t *testing.T, _ idempotency.Store) idempotency.Store {
						return open(t, session(t, host, space), row.options)
					},
					Owner: &storetest.Owner{Env: []string{hostEnv + "=" + host,
						keyspaceEnv + "=" + space}},
				})
		})
	}
}

func TestOpenNamesTheRemedyOfAMissingTable(t *testing.T) {
	host := testkit.Cassandra(t)
	_, err := cassandra.Open(t.Context(), session(t, host, keyspace(t, host)), cassandra.Options{})
	if err == nil || !strings.Contains(err.Error(), "create it with cassandra.Setup") {
		t.Errorf("got %v", err)
	}
}

// CQL reserves words, and capitals count only in quotes, as everywhere.
func TestEveryNameOfATableWorks(t *testing.T) {
	host := testkit.Cassandra(t)
	space := keyspace(t, host)
	s := session(t, host, space)
	for _, name := range []string{"select", "Billing_Keys", space + ".Order", `"Keys"`,
		space + `."order"`} {
		options := cassandra.Options{Table: name}
		if err := cassandra.Setup(t.Context(), s, options); err != nil {
			t.Fatal(err)
		}
		store := open(t, s, options)
		key := idempotency.Key{ID: "id"}
		if _, err := store.Get(t.Context(), key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var tables []string
	iter := s.Query("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?",
		space).WithContext(t.Context()).Iter()
	for name := ""; iter.Scan(&name); {
		tables = append(tables, name)
	}
	if err := iter.Close(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(tables)
	if want := []string{"Keys", "billing_keys", "order", "select"}; !slices.Equal(tables, want) {
		t.Errorf("tables %q, want %q", tables, want)
	}
}
