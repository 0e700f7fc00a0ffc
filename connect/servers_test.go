package connect

import (
	"log/slog"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

func serversOf(t *testing.T, brokers ...string) *Servers {
	t.Helper()
	c := config.Default()
	c.Kafka.Brokers, c.Instance = brokers, "test"
	c.Store.Type = config.StoreEmbedded
	c.Store.Embedded.Path = filepath.Join(t.TempDir(), "store")
	return NewServers(c, slog.New(slog.DiscardHandler))
}

func TestServersAreOpenedOnceAndEndTogether(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	before := goleak.IgnoreCurrent()
	servers := serversOf(t, brokers...)
	first, err := servers.Reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := servers.Clusters(t.Context())
	if err != nil || again != first {
		t.Errorf("other clients at the second use, %v", err)
	}
	store, err := servers.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if other, err := servers.StoreToLook(t.Context()); err != nil || other != store {
		t.Errorf("another store at the second use, %v", err)
	}
	if _, err := servers.Knowledge(t.Context()); err != nil {
		t.Error(err)
	}
	if err := servers.Close(); err != nil {
		t.Fatal(err)
	}
	next := NewServers(servers.config, servers.log)
	if _, err := next.Store(t.Context()); err != nil {
		t.Errorf("the files of the store belong to somebody after Close: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

func TestServersThatWereNotUsedAreNotOpened(t *testing.T) {
	before := goleak.IgnoreCurrent()
	servers := serversOf(t, "127.0.0.1:1")
	if err := servers.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}

// What was opened before an error is closed all the same, and an error does not stay.
func TestServersThatAreAwayLeaveTheOthersToClose(t *testing.T) {
	before := goleak.IgnoreCurrent()
	servers := serversOf(t, "127.0.0.1:1")
	if _, err := servers.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := servers.Reach(t.Context()); err == nil {
		t.Error("a broker answered at a port that nobody has")
	}
	if err := servers.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}
