package kafkalog_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/kafkalog"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// made creates the topics of each group that is used.
type made struct {
	*kafkalog.Logs
	shards int
	client *kgo.Client
	done   sync.Map // group -> *sync.Once
}

func newMade(t *testing.T, brokers []string, shards int) *made {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &made{Logs: kafkalog.New(kafkalog.Options{
		Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)}}), shards: shards, client: client}
}

func (m *made) ready(group string) {
	once, _ := m.done.LoadOrStore(group, new(sync.Once))
	once.(*sync.Once).Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := kafkalog.Setup(
			ctx, m.client, group, m.shards, 24*time.Hour, false, func(string) {},
		); err != nil {
			fmt.Fprintln(os.Stderr, err) // what follows fails
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

func open(t *testing.T, o claimlog.Options) *claimlog.Store {
	t.Helper()
	s := claimlog.Open(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const patience = 30 * time.Second

func TestConformance(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs := newMade(t, brokers, 4)
		storetest.Run(t, func(t *testing.T) dedup.Store {
			return open(t, claimlog.Options{Opener: logs, Path: t.TempDir(), Wait: patience})
		}, storetest.Features{
			ExpiryGranularity: time.Second,
			Reopen: func(t *testing.T, _ dedup.Store) dedup.Store {
				return open(t, claimlog.Options{Opener: logs, Wait: patience})
			},
		})
	})
}

// Every process has an index of its own, and all answer alike.
func TestConformanceOfSeveralProcesses(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs := newMade(t, brokers, 2)
		storetest.Run(t, func(t *testing.T) dedup.Store {
			return storetest.InTurn(
				open(t, claimlog.Options{Opener: logs, Wait: patience}),
				open(t, claimlog.Options{Opener: logs, Wait: patience, Path: t.TempDir()}),
			)
		}, storetest.Features{ExpiryGranularity: time.Second})
	})
}

func TestNamesOfTopics(t *testing.T) {
	if got := kafkalog.Topic("orders-dedup"); got != "orders-dedup.claims" {
		t.Error(got)
	}
	if got := kafkalog.RegistryTopic("orders-dedup"); got != "orders-dedup.claims.scopes" {
		t.Error(got)
	}
	seen := map[string]bool{}
	for _, group := range []string{"a/b", "a:b", "a b", "a_b", "", strings.Repeat("x", 250),
		strings.Repeat("x", 251)} {
		topic := kafkalog.RegistryTopic(group)
		if seen[topic] || len(topic) > 249 || strings.ContainsAny(topic, "/: ") {
			t.Errorf("group %q has topic %q", group, topic)
		}
		seen[topic] = true
	}
}
