package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

func startRedis(t *testing.T, config map[string]string) *servers.Server {
	t.Helper()
	servers.NeedRedis(t)
	s, err := servers.StartRedis(t.Context(),
		servers.RedisOptions{Dir: t.TempDir(), Config: config})
	return servers.ForTest(t, s, err)
}

func onRedis(t *testing.T, address string) place {
	t.Helper()
	return place{brokers: testkit.Kafka(t),
		store: fmt.Sprintf("{type: redis, redis: {addresses: [%q], timeout: 2s}}", address)}
}

func redisClient(t *testing.T, address string) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// One of two processes is killed in mid-run, and the store too, which keeps what it has answered.
func TestAKilledProcessAndAKilledRedisLoseNothing(t *testing.T) {
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		server := startRedis(t, map[string]string{"appendonly": "yes", "appendfsync": "always"})
		d := deployAt(t, onRedis(t, server.Addr()), delivery, killed...)
		d.produce(100_000, 2)
		d.command("validate")
		d.killInMidRun(func() {
			server.Kill()
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		d.waitFor(1)
		d.mustLoseNothing()
		if found := d.command("id", "lookup", d.input+"/00000000"); !strings.Contains(found,
			"partition") {
			t.Errorf("id lookup: %s", found)
		}
	})
}

// A failover to a replica that lags takes claims back: copies are forwarded again, and nothing is
// lost. docs/stores.md says so.
func TestAFailoverOfRedisRepeatsAndLosesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	master := startRedis(t, map[string]string{"repl-diskless-sync-delay": "0"})
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := startRedis(t, map[string]string{"replicaof": host + " " + port})
	client := redisClient(t, replica.Addr())
	testkit.Eventually(t, time.Minute, "the replica's link", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(),
			"master_link_status:up")
	})
	d := deployAt(t, onRedis(t, master.Addr()), exactlyOnce, "batch_records: 500")
	d.produce(100_000, 4)
	d.start("one")
	d.waitFor(0.1)
	command(t, client, "replicaof", "no", "one") // what comes now it does not get
	d.waitFor(0.4)
	master.Kill()
	command(t, client, "config", "set", "port", port) // where the process looks for the master
	d.waitFor(1)
	v := d.check()
	if v.lost > 0 {
		t.Errorf("%d lost", v.lost)
	}
	if v.doubled == 0 {
		t.Error("nothing was repeated: the failover took no claims back")
	}
}

// The points around the claims: between two replies of one pipeline there is none, and the others
// are the same with every store.
func TestACrashAroundTheClaimsOnRedis(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at := onRedis(t, startRedis(t, map[string]string{"appendonly": "yes",
		"appendfsync": "always"}).Addr())
	around := slices.DeleteFunc(crashCases("redis", last), func(c crashCase) bool {
		return len(c.crashes) > 1 ||
			!slices.Contains([]string{"batch-polled", "batch-claimed", "batch-committed"},
				c.crashes[0].point)
	})
	side(t, len(around), around, func(t *testing.T, c crashCase) { c.run(t, at, 1500) })
}

func command(t *testing.T, client *goredis.Client, words ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.Do(ctx, words...).Err(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}
