package redis_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func optionsFor(addresses ...string) redis.Options {
	return redis.Options{
		Mode: redis.Standalone, Addresses: addresses, KeyPrefix: "kdedup-test",
		Timeout:     20 * time.Second,
		Connections: 8, PipelineClaims: 1000, Logger: slog.New(slog.DiscardHandler),
	}
}

func open(t *testing.T, o redis.Options) *redis.Store {
	t.Helper()
	store, err := redis.Open(t.Context(), o, prometheus.NewRegistry())
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

// startServer starts a server of the test's own.
func startServer(t *testing.T, config map[string]string) *servers.Server {
	t.Helper()
	servers.NeedRedis(t)
	s, err := servers.StartRedis(t.Context(),
		servers.RedisOptions{Dir: t.TempDir(), Config: config})
	return servers.ForTest(t, s, err)
}

func startCluster(t *testing.T) redis.Options {
	t.Helper()
	servers.NeedRedis(t)
	nodes, err := servers.StartRedisCluster(t.Context(), 3, servers.RedisOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		servers.ForTest(t, node, nil)
	}
	options := optionsFor(nodes[0].Addr(), nodes[1].Addr())
	options.Mode = redis.Cluster
	return options
}

// Each store has a proxy of its own, which loses an answer when the suite asks for it.
func TestConformance(t *testing.T) {
	server := servers.Redis(t)
	storetest.Run(t, func(t *testing.T) dedup.Store {
		p := testkit.StartProxy(t, server)
		return &proxied{open(t, optionsFor(p.Addr())), p}
	}, storetest.Features{
		ExpiryGranularity: time.Second,
		Reopen: func(t *testing.T, _ dedup.Store) dedup.Store {
			return open(t, optionsFor(server))
		},
		Ambiguous: func(_ *testing.T, s dedup.Store) {
			s.(*proxied).proxy.LoseNext(func([]byte) bool { return true })
		},
	})
}

type proxied struct {
	*redis.Store
	proxy *testkit.Proxy
}

func TestConformanceOfACluster(t *testing.T) {
	options := startCluster(t)
	storetest.Run(t, func(t *testing.T) dedup.Store { return &faulty{Store: open(t, options)} },
		storetest.Features{
			ExpiryGranularity: time.Second,
			Reopen: func(t *testing.T, _ dedup.Store) dedup.Store {
				return open(t, options)
			},
			Ambiguous: func(_ *testing.T, s dedup.Store) { s.(*faulty).lose.Store(true) },
		})
}

// faulty loses the answer of a claim that the servers have applied.
type faulty struct {
	*redis.Store
	lose atomic.Bool
}

func (f *faulty) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers, err := f.Store.Claim(ctx, scope, claims)
	if f.lose.Swap(false) {
		return make([]dedup.Answer, len(claims)), context.DeadlineExceeded
	}
	return answers, err
}

func startSentinelServer(t *testing.T) *servers.Server {
	t.Helper()
	s, err := servers.StartSentinel(t.Context(), servers.RedisOptions{Dir: t.TempDir()})
	return servers.ForTest(t, s, err)
}

// documentedRights are the commands that docs/stores.md grants.
func documentedRights(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rights, found := strings.Cut(string(text), "ACL SETUSER kdedup on >PASSWORD ~kdedup:* ")
	rights, _, ends := strings.Cut(rights, "\n")
	if !found || !ends {
		t.Fatal("docs/stores.md grants no rights")
	}
	return rights
}
