package cassandralog_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/cassandralog"
	"github.com/kdedup/kdedup/dedup/claimlog/logtest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"

// made founds the log of each group that is used.
type made struct {
	*cassandralog.Logs
	t      *testing.T
	shards int
	done   sync.Map // group -> *sync.Once
}

func optionsFor(t *testing.T, host string) cassandra.Options {
	return cassandra.Options{
		Hosts: []string{host}, Keyspace: testkit.Keyspace(t), Table: "claim_log",
		Consistency: "LOCAL_QUORUM", SerialConsistency: "LOCAL_SERIAL",
		Timeout: 20 * time.Second, Connections: 2, InFlight: 64, BatchClaims: 200,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// newMade is a process of its own: it has a connection of its own.
func newMade(t *testing.T, o cassandra.Options, shards int) *made {
	t.Helper()
	m := &made{Logs: cassandralog.New(cassandralog.Options{Cassandra: o}), t: t, shards: shards}
	if err := m.Setup(t.Context(), replication, time.Hour, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *made) ready(group string) {
	once, _ := m.done.LoadOrStore(group, new(sync.Once))
	once.(*sync.Once).Do(func() {
		if err := m.Found(
			context.Background(), group, m.shards, false, func(string) {},
		); err != nil {
			m.t.Error(err)
		}
	})
}

func (m *made) Open(ctx context.Context, group string) (claimlog.Log, error) {
	m.ready(group)
	return m.Logs.Open(ctx, group)
}

func (m *made) Registry(group string) claimlog.Registry {
	m.ready(group)
	return m.Logs.Registry(group)
}

// shared is one opener for several stores; its test closes it.
type shared struct{ *made }

func (shared) Close() error { return nil }

func share(t *testing.T, m *made) shared {
	t.Cleanup(func() { _ = m.Close() })
	return shared{m}
}

// paxosVariants are the real servers.
var paxosVariants = map[string]func(testing.TB) string{"paxos v2": testkit.Cassandra,
	"paxos v1": testkit.CassandraV1}

// onEach has a server with the older variant in a turn of the proofs.
func onEach(t *testing.T, test func(t *testing.T, host string)) {
	for _, name := range testkit.Share(t, []string{"paxos v2", "paxos v1"}, []string{"paxos v2"}) {
		t.Run(name, func(t *testing.T) { test(t, paxosVariants[name](t)) })
	}
}

func TestConformance(t *testing.T) {
	onEach(t, func(t *testing.T, host string) {
		o := optionsFor(t, host)
		o.Keyspace, o.Table = "T"+o.Keyspace[1:], "claimLog"
		logtest.Conformance(t, share(t, newMade(t, o, 4)))
	})
}

// Each process has a connection of its own, too.
func TestConformanceOfSeveralProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, host string) {
		o := optionsFor(t, host)
		logtest.OfSeveralProcesses(t, share(t, newMade(t, o, 2)), share(t, newMade(t, o, 2)))
	})
}
