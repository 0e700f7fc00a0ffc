package redis_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/redis"
	"github.com/kdedup/kdedup/idempotency/storetest"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// Where the process of a killed owner finds its store.
const addressEnv = "KDEDUP_TEST_OWNER_REDIS"

const prefix = "idempotency-test:"

func TestMain(m *testing.M) {
	storetest.OwnerProcess(func() (idempotency.Store, error) {
		return redis.New(connect(os.Getenv(addressEnv)), prefix), nil
	})
	goleak.VerifyTestMain(m)
}

func connect(address string) goredis.UniversalClient {
	return goredis.NewUniversalClient(&goredis.UniversalOptions{Addrs: []string{address},
		ReadTimeout: 20 * time.Second})
}

func client(t *testing.T, address string) goredis.UniversalClient {
	t.Helper()
	c := connect(address)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	address := servers.Redis(t)
	store := redis.New(client(t, address), prefix)
	storetest.Run(t, func(*testing.T) idempotency.Store { return store }, storetest.Features{
		ExpiryGranularity: time.Millisecond,
		Reopen: func(t *testing.T, _ idempotency.Store) idempotency.Store {
			return redis.New(client(t, address), prefix)
		},
		Owner: &storetest.Owner{Env: []string{addressEnv + "=" + address}},
	})
}

func TestPrefixesAreApart(t *testing.T) {
	c := client(t, servers.Redis(t))
	key := idempotency.Key{Namespace: t.Name(), ID: fmt.Sprint(time.Now().UnixNano())}
	record := idempotency.Record{Version: idempotency.Version{Revision: 1},
		State: idempotency.Started}
	for _, prefix := range []string{"idempotency-test:a:", "idempotency-test:b:"} {
		if _, done, err := redis.New(c, prefix).Swap(
			t.Context(), key, idempotency.Version{}, record, time.Minute,
		); err != nil || !done {
			t.Errorf("%s: %v, done %t", prefix, err, done)
		}
	}
}

func TestAStrangersValueIsAnError(t *testing.T) {
	c := client(t, servers.Redis(t))
	store := redis.New(c, "idempotency-test:strange:")
	if err := c.Set(
		context.Background(), "idempotency-test:strange:1:n:1", "not a record", time.Minute,
	).Err(); err != nil {
		t.Fatal(err)
	}
	key := idempotency.Key{Namespace: "n", ID: "1"}
	if _, err := store.Get(t.Context(), key); err == nil {
		t.Error("get: no error")
	}
	if _, done, err := store.Swap(
		t.Context(), key, idempotency.Version{}, idempotency.Record{}, time.Minute,
	); err == nil || done {
		t.Errorf("swap: %v, done %t", err, done)
	}
}
