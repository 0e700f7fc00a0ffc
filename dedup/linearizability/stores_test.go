package linearizability_test

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/cassandralog"
	"github.com/kdedup/kdedup/dedup/claimlog/kafkalog"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// processes share a store, each behind a proxy of its own.
const processes = 3

// requestLimit is short, so that clients learn soon that an answer is lost.
const requestLimit = 2 * time.Second

var subjects = map[string]func(*testing.T) subject{
	"memory":   openMemory,
	"embedded": openEmbedded,
	"redis":    openRedis,
	"postgres": openPostgres,
	"kafka":    openClaimLog,
	"cassandra log, paxos v2": func(t *testing.T) subject {
		return openCassandraLog(t, testkit.Cassandra(t))
	},
	"cassandra log, paxos v1": func(t *testing.T) subject {
		return openCassandraLog(t, testkit.CassandraV1(t))
	},
	"cassandra, paxos v2": func(t *testing.T) subject {
		return openCassandra(t, testkit.Cassandra(t))
	},
	"cassandra, paxos v1": func(t *testing.T) subject {
		return openCassandra(t, testkit.CassandraV1(t))
	},
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openMemory(t *testing.T) subject {
	store := memory.New(memory.Options{Faults: spoil, Violation: t.Errorf})
	return subject{[]dedup.Store{store, store}, &faults{}}
}

// spoil lets a call take its time, and get lost, or lose some of its answers or all.
func spoil(claims []dedup.Claim) memory.Fault {
	switch rand.IntN(30) {
	case 0:
		return memory.Lost(errors.New("lost"))
	case 1:
		return memory.Ambiguous(errors.New("answer lost"))
	case 2:
		effects := make([]memory.Effect, len(claims))
		for i := range effects {
			effects[i] = memory.Effect(rand.IntN(3))
		}
		return memory.Partial(errors.New("partly"), func(i int) memory.Effect { return effects[i] })
	}
	return memory.Fault{}
}

func openEmbedded(t *testing.T) subject {
	store, err := embedded.Open(embedded.Options{Path: t.TempDir(), Logger: quiet()})
	return subject{[]dedup.Store{opened(t, store, err)}, &faults{}}
}

func openRedis(t *testing.T) subject {
	t.Helper()
	longTest(t)
	servers.NeedRedis(t)
	server, err := servers.StartRedis(t.Context(), servers.RedisOptions{
		Dir: t.TempDir(), Config: map[string]string{"appendonly": "yes", "appendfsync": "always"},
	})
	server = servers.ForTest(t, server, err)
	return behindProxies(t, server.Addr(), server, func(addr string) (dedup.Store, error) {
		return redis.Open(t.Context(), redis.Options{
			Mode: redis.Standalone, Addresses: []string{addr}, KeyPrefix: "kdedup",
			Timeout:     requestLimit,
			Connections: 4, PipelineClaims: 20, Logger: quiet(),
		}, nil)
	})
}

func openPostgres(t *testing.T) subject {
	t.Helper()
	longTest(t)
	servers.NeedPostgres(t)
	server, err := servers.StartPostgres(t.Context(), servers.PostgresOptions{Dir: t.TempDir()})
	server = servers.ForTest(t, server, err)
	options := postgres.Options{
		Hosts: []string{server.Addr()}, Database: "postgres", Username: "postgres",
		Timeout:     requestLimit,
		BatchClaims: 20, SweepInterval: time.Second,
	}
	if err := postgres.Setup(t.Context(), options, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return behindProxies(t, server.Addr(), server, func(addr string) (dedup.Store, error) {
		proxied := options
		proxied.Hosts = []string{addr}
		return postgres.Open(t.Context(), proxied, nil)
	})
}

// openCassandra is on a server that other tests use at the same time: it is neither stopped nor
// killed.
func openCassandra(t *testing.T, host string) subject {
	t.Helper()
	options := cassandra.Options{
		Hosts: []string{host}, Keyspace: testkit.Keyspace(t), Table: "processed_messages",
		Consistency: "LOCAL_QUORUM", SerialConsistency: "LOCAL_SERIAL", Timeout: requestLimit,
		Connections: 2, InFlight: 32, BatchClaims: 20, Logger: quiet(),
	}
	setup := options
	setup.Timeout = time.Minute
	if err := cassandra.Setup(
		t.Context(), setup, "{'class': 'SimpleStrategy', 'replication_factor': 1}", false,
		func(string) {},
	); err != nil {
		t.Fatal(err)
	}
	return behindProxies(t, host, nil, func(addr string) (dedup.Store, error) {
		proxied := options
		proxied.Hosts = []string{addr}
		return cassandra.Open(t.Context(), proxied, nil)
	})
}

// openCassandraLog is on a server that other tests use at the same time, as well.
func openCassandraLog(t *testing.T, host string) subject {
	t.Helper()
	longTest(t)
	options := cassandra.Options{
		Hosts: []string{host}, Keyspace: testkit.Keyspace(t), Table: "claim_log",
		Consistency: "LOCAL_QUORUM", SerialConsistency: "LOCAL_SERIAL", Timeout: time.Minute,
		Connections: 2, Logger: quiet(),
	}
	logs := cassandralog.New(cassandralog.Options{Cassandra: options})
	err := logs.Setup(t.Context(), "{'class': 'SimpleStrategy', 'replication_factor': 1}", ttl,
		false, func(string) {})
	if err == nil {
		err = logs.Found(t.Context(), group, 3, false, func(string) {})
	}
	if err = errors.Join(err, logs.Close()); err != nil {
		t.Fatal(err)
	}
	return behindProxies(t, host, nil, func(addr string) (dedup.Store, error) {
		proxied := options
		proxied.Hosts, proxied.Timeout = []string{addr}, requestLimit
		return claimlog.Open(claimlog.Options{
			Opener: cassandralog.New(cassandralog.Options{Cassandra: proxied}),
			Path:   t.TempDir(), Wait: 2 * requestLimit,
		}), nil
	})
}

// openClaimLog is on a broker that other tests use at the same time, too.
func openClaimLog(t *testing.T) subject {
	t.Helper()
	longTest(t)
	broker := testkit.Kafka(t)[0]
	client := testkit.KafkaClient(t, []string{broker})
	name := "linearizability-" + strings.ToLower(cryptorand.Text()[:8]) + "-" + kafkalog.GroupMark
	logs := kafkalog.New(kafkalog.Options{Connection: []kgo.Opt{kgo.SeedBrokers(broker)},
		Topic: name})
	for _, topic := range logs.Topics(group, 3, ttl) {
		values := make(map[string]*string)
		for _, s := range topic.Settings {
			values[s.Key] = &s.Value
		}
		if _, err := kadm.NewClient(client).CreateTopic(
			t.Context(), int32(topic.Partitions), 1, values, topic.Name,
		); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, time.Minute, "the topics", func() bool {
		return logs.Check(t.Context(), group, ttl) == nil
	})
	return behindProxies(t, broker, nil, func(addr string) (dedup.Store, error) {
		// the broker tells its own address, beside the proxy
		through := kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		})
		return claimlog.Open(claimlog.Options{
			Opener: kafkalog.New(kafkalog.Options{
				Connection: []kgo.Opt{kgo.SeedBrokers(broker), through}, Topic: name,
			}),
			Path: t.TempDir(), Wait: requestLimit,
		}), nil
	})
}

// longTest skips what needs a server with -short.
func longTest(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a real server is not for -short")
	}
}

func behindProxies(
	t *testing.T, addr string, server *servers.Server, open func(addr string) (dedup.Store, error),
) subject {
	t.Helper()
	s := subject{faults: &faults{server: server}}
	for range processes {
		proxy := testkit.StartProxy(t, addr)
		store, err := open(proxy.Addr())
		s.sessions = append(s.sessions, opened(t, store, err))
		s.faults.proxies = append(s.faults.proxies, proxy)
	}
	return s
}

func opened(t *testing.T, store dedup.Store, err error) dedup.Store {
	t.Helper()
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
