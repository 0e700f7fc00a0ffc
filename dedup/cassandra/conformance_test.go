package cassandra_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"

func optionsFor(t *testing.T, host string) cassandra.Options {
	return cassandra.Options{
		Hosts: []string{host}, Keyspace: testkit.Keyspace(t), Table: "processed_messages",
		Consistency: "LOCAL_QUORUM", SerialConsistency: "LOCAL_SERIAL",
		Timeout: 20 * time.Second, Connections: 2, InFlight: 64, BatchClaims: 200,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// create makes the schema of a test's own keyspace.
func create(t *testing.T, o cassandra.Options) {
	t.Helper()
	if err := cassandra.Setup(t.Context(), o, replication, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, o cassandra.Options) *cassandra.Store {
	t.Helper()
	store, err := cassandra.Open(t.Context(), o, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// paxosVariants are the real servers: whatever needs one holds with both variants of the Paxos
// protocol.
var paxosVariants = map[string]func(testing.TB) string{"paxos v2": testkit.Cassandra,
	"paxos v1": testkit.CassandraV1}

func TestConformance(t *testing.T) {
	for name, host := range paxosVariants {
		t.Run(name, func(t *testing.T) { conform(t, host(t)) })
	}
}

// conform runs the suite on a server.
func conform(t *testing.T, host string) {
	t.Helper()
	options := optionsFor(t, host)
	options.Keyspace, options.Table = "T"+options.Keyspace[1:], "processedMessages"
	create(t, options)
	store := open(t, options)
	t.Cleanup(func() { _ = store.Close() })
	storetest.Run(t, func(*testing.T) dedup.Store { return &faulty{Store: store, Mover: store} },
		storetest.Features{
			ExpiryGranularity: time.Second,
			Reopen: func(t *testing.T, _ dedup.Store) dedup.Store {
				again := open(t, options)
				t.Cleanup(func() { _ = again.Close() })
				return again
			},
			Ambiguous: func(t *testing.T, s dedup.Store) { s.(*faulty).loseNextAnswer() },
		})
}

// faulty loses the answer of a claim that the server has applied.
type faulty struct {
	dedup.Store
	dedup.Mover
	lose bool
}

func (f *faulty) loseNextAnswer() { f.lose = true }

func (f *faulty) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers, err := f.Store.Claim(ctx, scope, claims)
	if f.lose {
		f.lose = false
		return make([]dedup.Answer, len(claims)), context.DeadlineExceeded
	}
	return answers, err
}
