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
		store: onRedisAt(address)}
}

func onRedisAt(address string) string {
	return fmt.Sprintf("{type: redis, redis: {addresses: [%q], timeout: 2s}}", address)
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

// A server is full, or begins to evict, while kdedup runs. The lanes wait, and whoever asks is told
// why, though the server answers look-ups.
func TestARedisThatTakesNoClaimsIsToldByReadiness(t *testing.T) {
	t.Parallel()
	for setting, c := range map[string]struct{ bad, good, want string }{
		"maxmemory": {"1", "0", "ids: redis: the server is full"},
		"maxmemory-policy": {"allkeys-lru", "noeviction",
			`the server's maxmemory-policy is "allkeys-lru"`},
	} {
		t.Run(setting, func(t *testing.T) {
			server := startRedis(t, nil)
			at := inProcess(t)
			at.store = onRedisAt(server.Addr())
			d := deployAt(t, at, exactlyOnce, "batch_records: 500", "lanes: 1")
			one := d.start("one")
			one.waitReady()
			client := redisClient(t, server.Addr())
			set := func(value string) {
				t.Helper()
				if err := client.ConfigSet(t.Context(), setting, value).Err(); err != nil {
					t.Fatal(err)
				}
			}
			set(c.bad)
			if setting == "maxmemory-policy" {
				testkit.Eventually(t, time.Minute, "the reason before a record comes", func() bool {
					return strings.Contains(one.readyz(), c.want)
				})
			}
			d.produce(4000, 8)
			testkit.Eventually(t, time.Minute, "the reason in /readyz", func() bool {
				return strings.Contains(one.readyz(), c.want)
			})
			if one.ready() {
				t.Error("it is ready")
			}
			if up := one.gauge("kdedup_store_up"); up != 0 {
				t.Errorf("kdedup_store_up is %v", up)
			}
			set(c.good)
			d.waitFor(1)
			d.mustBeClean()
			one.waitReady()
			if up := one.gauge("kdedup_store_up"); up != 1 {
				t.Errorf("in the end kdedup_store_up is %v", up)
			}
		})
	}
}
