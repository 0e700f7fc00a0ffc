package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/dedup/selftest"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

const patience = 30 * time.Second

var scope = dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1, Extractor: "key"}

// claimsOf are claims of one record each, on the given partition.
func claimsOf(n int, partition int32) []dedup.Claim {
	claims := make([]dedup.Claim, n)
	for i := range claims {
		claims[i] = dedup.Claim{
			ID: dedup.ID(fmt.Sprint("id-", i)), Owner: dedup.Coordinates{TopicID: [16]byte{1},
				Partition: partition, Offset: int64(i)},
		}
	}
	return claims
}

// admin is a client that asks what the store does not.
func admin(t *testing.T, addr string) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func do(t *testing.T, client *goredis.Client, words ...any) {
	t.Helper()
	if err := client.Do(t.Context(), words...).Err(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}

func undecided(answers []dedup.Answer) (n int) {
	for _, a := range answers {
		if a.Outcome == dedup.Undecided {
			n++
		}
	}
	return n
}

func wantClaimed(t *testing.T, store dedup.Store, claims []dedup.Claim) {
	t.Helper()
	answers, err := store.Claim(t.Context(), scope, claims)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if a.Owner != claims[i].Owner {
			t.Fatalf("claim %d: %+v", i, a)
		}
	}
}

func TestAnsweredClaimsOutliveAKillWithAppendfsyncAlways(t *testing.T) {
	server := startServer(t, map[string]string{"appendonly": "yes", "appendfsync": "always"})
	options := optionsFor(server.Addr())
	options.PipelineClaims = 100
	store := open(t, options)
	claims := claimsOf(20_000, 1)
	type result struct {
		answers []dedup.Answer
		err     error
	}
	ended := make(chan result, 1)
	go func() {
		answers, err := store.Claim(context.WithoutCancel(t.Context()), scope, claims)
		ended <- result{answers, err}
	}()
	client := admin(t, server.Addr())
	testkit.Eventually(t, patience, "claims in the server", func() bool {
		return client.DBSize(t.Context()).Val() > 1000
	})
	server.Kill()
	got := <-ended
	if open := undecided(got.answers); got.err == nil || open == 0 || open == len(claims) {
		t.Fatalf("%d of %d undecided, %v: the kill came too early or too late", open, len(claims),
			got.err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	answers, err := open(t, options).Claim(t.Context(), scope, claimsOf(len(claims), 2))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if got.answers[i].Outcome == dedup.Applied && a.Owner != claims[i].Owner {
			t.Fatalf("claim %d was answered and is forgotten: %+v", i, a)
		}
	}
}

func TestAServerThatEvictsIsRefused(t *testing.T) {
	server := startServer(t, map[string]string{"maxmemory-policy": "allkeys-lru"})
	store, err := redis.Open(t.Context(), optionsFor(server.Addr()), prometheus.NewRegistry())
	if err == nil {
		_ = store.Close()
	}
	if err == nil || !strings.Contains(err.Error(), `maxmemory-policy is "allkeys-lru"`) ||
		!strings.Contains(err.Error(), "noeviction") {
		t.Errorf("got %v", err)
	}
}

// A server that takes over is a new connection, so it is looked at before it gets claims.
func TestAServerThatEvictsIsRefusedOnReconnection(t *testing.T) {
	server := startServer(t, nil)
	p := testkit.StartProxy(t, server.Addr())
	store := open(t, optionsFor(p.Addr()))
	wantClaimed(t, store, claimsOf(10, 1))
	client := admin(t, server.Addr())
	do(t, client, "config", "set", "maxmemory-policy", "volatile-ttl")
	p.Cut()
	answers, err := store.Claim(t.Context(), scope, claimsOf(10, 1))
	if err == nil || !strings.Contains(err.Error(), "volatile-ttl") || undecided(answers) != 10 {
		t.Errorf("%d undecided, %v", undecided(answers), err)
	}
	do(t, client, "config", "set", "maxmemory-policy", "noeviction")
	wantClaimed(t, store, claimsOf(10, 1))
}

func TestAFullServerLeavesClaimsUndecidedUntilItHasRoom(t *testing.T) {
	server := startServer(t, nil)
	store, client := open(t, optionsFor(server.Addr())), admin(t, server.Addr())
	do(t, client, "config", "set", "maxmemory", "1")
	answers, err := store.Claim(t.Context(), scope, claimsOf(2500, 1))
	if err == nil || !strings.Contains(err.Error(), "the server is full") ||
		!strings.Contains(err.Error(), "raise maxmemory") {
		t.Errorf("got %v", err)
	}
	if undecided(answers) != 2500 {
		t.Errorf("%d undecided", undecided(answers))
	}
	do(t, client, "config", "set", "maxmemory", "0")
	wantClaimed(t, store, claimsOf(2500, 1))
}

func TestAStoppedServerLeavesClaimsUndecidedWithinTheTimeout(t *testing.T) {
	server := startServer(t, nil)
	options := optionsFor(server.Addr())
	options.Timeout = 300 * time.Millisecond
	store := open(t, options)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	answers, err := store.Claim(t.Context(), scope, claimsOf(5000, 1))
	took := time.Since(start)
	if err == nil || undecided(answers) != 5000 {
		t.Errorf("%d undecided, %v", undecided(answers), err)
	}
	if took > 10*time.Second { // those that were under way, and no further one
		t.Errorf("it took %v", took)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "an answer", func() bool {
		answers, err = store.Claim(t.Context(), scope, claimsOf(5000, 1))
		return err == nil
	})
	for i, a := range answers {
		if a.Owner.Offset != int64(i) || a.Owner.Partition != 1 {
			t.Fatalf("claim %d: %+v", i, a)
		}
	}
}

// startReplica starts a server that follows another one.
func startReplica(t *testing.T, master *servers.Server) *servers.Server {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := startServer(t, map[string]string{"replicaof": host + " " + port,
		"repl-diskless-load": "swapdb"})
	client := admin(t, replica.Addr())
	testkit.Eventually(t, patience, "the replica's link", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(),
			"master_link_status:up")
	})
	return replica
}

func TestClaimsWaitForReplicas(t *testing.T) {
	master := startServer(t, map[string]string{"repl-diskless-sync-delay": "0"})
	replica := startReplica(t, master)
	options := optionsFor(master.Addr())
	options.WaitReplicas, options.WaitTimeout = 1, 5*time.Second
	store := open(t, options)
	wantClaimed(t, store, claimsOf(2500, 1))
	if n := admin(t, replica.Addr()).DBSize(t.Context()).Val(); n < 2500 {
		t.Errorf("the replica has %d keys when the claims are answered", n)
	}

	options.WaitTimeout = 100 * time.Millisecond
	impatient := open(t, options)
	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	for name, claims := range map[string][]dedup.Claim{
		"known and replicated": claimsOf(10, 2), "new": claimsOf(2600, 3)[2500:],
		"known and not replicated": claimsOf(2600, 4)[2500:],
	} {
		answers, err := impatient.Claim(t.Context(), scope, claims)
		if err == nil || !strings.Contains(err.Error(), "0 of 1 replicas") ||
			undecided(answers) != len(claims) {
			t.Errorf("%s: %d of %d undecided, %v", name, undecided(answers), len(claims), err)
		}
	}
	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "the replica again", func() bool {
		answers, err := impatient.Claim(t.Context(), scope, claimsOf(2600, 5))
		return err == nil && undecided(answers) == 0
	})
}

// As docs/stores.md says it: what the old master had not sent is claimed again.
func TestAFailoverForgetsWhatWasNotReplicated(t *testing.T) {
	master := startServer(t, map[string]string{"repl-diskless-sync-delay": "0"})
	replica := startReplica(t, master)
	store := open(t, optionsFor(master.Addr()))
	client := admin(t, replica.Addr())
	wantClaimed(t, store, claimsOf(10, 1))
	testkit.Eventually(t, patience, "the first claims at the replica", func() bool {
		return client.DBSize(t.Context()).Val() == 10
	})
	do(t, client, "replicaof", "no", "one")
	wantClaimed(t, store, claimsOf(20, 1)[10:]) // the old master does not know yet
	master.Kill()
	promoted := open(t, optionsFor(replica.Addr()))
	answers, err := promoted.Claim(t.Context(), scope, claimsOf(20, 2))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		known, kept := a.Outcome == dedup.Exists, i < 10
		if known != kept {
			t.Errorf("claim %d: %+v", i, a)
		}
	}
}

func TestSentinelLeadsToTheNewMaster(t *testing.T) {
	master := startServer(t, map[string]string{"repl-diskless-sync-delay": "0"})
	replica := startReplica(t, master)
	sentinel := startSentinel(t, master)
	options := optionsFor(sentinel)
	options.Mode, options.MasterName = redis.Sentinel, "claims"
	store := open(t, options)
	wantClaimed(t, store, claimsOf(100, 1))
	client := admin(t, replica.Addr())
	testkit.Eventually(t, patience, "the claims at the replica", func() bool {
		return client.DBSize(t.Context()).Val() == 100
	})
	watch := admin(t, sentinel)
	testkit.Eventually(t, patience, "the sentinel to know the replica", func() bool {
		return watch.Do(t.Context(), "sentinel", "failover", "claims").Err() == nil
	})
	testkit.Eventually(t, 2*patience, "the new master", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "role:master")
	})
	// The old one may still take claims, which it forgets when it hears that it is a replica.
	testkit.Eventually(t, 2*patience, "claims at the new master", func() bool {
		answers, err := store.Claim(t.Context(), scope, claimsOf(200, 1))
		return err == nil && undecided(answers) == 0 && client.DBSize(t.Context()).Val() == 200
	})
}

// startSentinel starts one that watches a master under the name claims, and returns its address.
func startSentinel(t *testing.T, master *servers.Server) string {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	s := startSentinelServer(t)
	client := admin(t, s.Addr())
	do(t, client, "sentinel", "monitor", "claims", host, port, 1)
	do(t, client, "sentinel", "set", "claims", "down-after-milliseconds", 1000)
	return s.Addr()
}

// The cursor of a SCAN means nothing to a server that has started again: it could pass over claims.
func TestAnExportNoticesAServerThatStartsAgain(t *testing.T) {
	server := startServer(t, map[string]string{"appendonly": "yes", "appendfsync": "always"})
	store := open(t, optionsFor(server.Addr()))
	wantClaimed(t, store, claimsOf(10, 1))
	err := store.Export(t.Context(), scope, func([]dedup.Standing) error {
		server.Kill()
		return server.Restart(t.Context())
	})
	if err == nil || !strings.Contains(err.Error(), "run it again") {
		t.Errorf("got %v", err)
	}
}

func TestTheDocumentedRightsAreEnough(t *testing.T) {
	server := startServer(t, nil)
	client := admin(t, server.Addr())
	rights := []any{"acl", "setuser", "kdedup", "on", ">secret", "resetchannels", "~kdedup-test:*"}
	for command := range strings.FieldsSeq(documentedRights(t)) {
		rights = append(rights, command)
	}
	do(t, client, rights...)
	options := optionsFor(server.Addr())
	options.Username, options.Password, options.Database = "kdedup", "secret", 3
	store := open(t, options)
	wantClaimed(t, store, claimsOf(10, 1))
	if _, err := store.Lookup(t.Context(), scope, "id-1"); err != nil {
		t.Error(err)
	}
	moved, err := store.Find(t.Context(), scope, []dedup.ID{"id-2"})
	if err != nil || len(moved) != 1 {
		t.Fatalf("found %v, %v", moved, err)
	}
	if _, err := store.Import(t.Context(), scope, moved); err != nil {
		t.Error(err)
	}
	if err := store.Export(t.Context(), scope, func([]dedup.Standing) error {
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := errors.Join(
		store.Register(t.Context(), scope), store.Release(t.Context(), scope, "id-1"),
		store.Forget(t.Context(), scope),
	); err != nil {
		t.Error(err)
	}
	wantSelfTestPassed(t, store, client)
	options.Password = "wrong"
	wrong, err := redis.Open(t.Context(), options, prometheus.NewRegistry())
	if err == nil {
		_ = wrong.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") ||
		strings.Contains(err.Error(), "wrong\"") {
		t.Errorf("got %v", err)
	}
}

// wantSelfTestPassed also looks for keys that are left behind.
func wantSelfTestPassed(t *testing.T, store dedup.Store, client *goredis.Client) {
	t.Helper()
	steps := selftest.Run(t.Context(), store, "self-test", true)
	if last := steps[len(steps)-1]; !last.Passed {
		t.Errorf("%+v", last)
	}
	if info := client.Info(t.Context(), "keyspace").Val(); strings.Contains(info, "keys=") {
		t.Errorf("keys are left behind: %s", info)
	}
}

func TestSetupSaysWhatItFound(t *testing.T) {
	server := startServer(t, map[string]string{"appendonly": "yes"})
	var lines []string
	if err := redis.Setup(t.Context(), optionsFor(server.Addr()), func(line string) {
		lines = append(lines, line)
	}); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], server.Addr()+" needs no setup") ||
		!strings.Contains(lines[0], "appendonly on") {
		t.Errorf("got %q", lines)
	}
}

func TestANodeOfAClusterIsRefusedAsAStandaloneServer(t *testing.T) {
	options := startCluster(t)
	options.Mode, options.Addresses = redis.Standalone, options.Addresses[:1]
	store, err := redis.Open(t.Context(), options, prometheus.NewRegistry())
	if err == nil {
		_ = store.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "set mode to cluster") {
		t.Errorf("got %v", err)
	}
}

// A parameter group that is applied, a CONFIG SET: no connection ends by that.
func TestAServerThatBeginsToEvictGetsNoClaims(t *testing.T) {
	server := startServer(t, nil)
	options := optionsFor(server.Addr())
	printed := &testkit.Printed{}
	options.Logger = slog.New(slog.NewTextHandler(printed, nil))
	store, client := open(t, options), admin(t, server.Addr())
	wantClaimed(t, store, claimsOf(10, 1))
	do(t, client, "config", "set", "maxmemory-policy", "allkeys-lru")
	testkit.Eventually(t, patience, "claims that wait", func() bool {
		answers, err := store.Claim(t.Context(), scope, claimsOf(10, 1))
		return undecided(answers) == 10 && err != nil &&
			strings.Contains(err.Error(), `maxmemory-policy is "allkeys-lru"`)
	})
	if _, err := store.Lookup(t.Context(), scope, "id-1"); err == nil ||
		!strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("a look-up, which readiness asks for: %v", err)
	}
	do(t, client, "config", "set", "maxmemory", "1")
	_ = client.Set(t.Context(), "other", "evicts", 0).Err() // it may be refused at last
	do(t, client, "config", "set", "maxmemory", "0", "maxmemory-policy", "noeviction")
	testkit.Eventually(t, patience, "claims again", func() bool {
		answers, err := store.Claim(t.Context(), scope, claimsOf(10, 1))
		return undecided(answers) == 0 && err == nil
	})
	if got := printed.String(); !strings.Contains(got, "the server has evicted keys") {
		t.Errorf("logged: %s", got)
	}
}

func TestAServerThatStopsToWriteItsFileIsTold(t *testing.T) {
	server := startServer(t, map[string]string{"appendonly": "yes"})
	options := optionsFor(server.Addr())
	printed := &testkit.Printed{}
	options.Logger = slog.New(slog.NewTextHandler(printed, nil))
	open(t, options)
	if got := printed.String(); got != "" {
		t.Errorf("logged: %s", got)
	}
	do(t, admin(t, server.Addr()), "config", "set", "appendonly", "no")
	testkit.Eventually(t, patience, "the warning", func() bool {
		return strings.Contains(printed.String(), "appendonly is off")
	})
}
