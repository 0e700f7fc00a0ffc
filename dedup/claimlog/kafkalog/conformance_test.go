package kafkalog_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/kafkalog"
	"github.com/kdedup/kdedup/dedup/claimlog/logtest"
	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) {
	kafkalog.LookOften()
	goleak.VerifyTestMain(m)
}

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
	once.(*sync.Once).Do(func() { m.create(group) })
}

// create makes the topics of a group that are missing, and returns when all brokers know them; what
// follows fails without them. It reports whether the log is a new one.
func (m *made) create(group string) (fresh bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin := kadm.NewClient(m.client)
	for i, topic := range m.Topics(group, m.shards, 24*time.Hour) {
		values := make(map[string]*string)
		for _, s := range topic.Settings {
			values[s.Key] = &s.Value
		}
		_, err := admin.CreateTopic(ctx, int32(topic.Partitions), 1, values, topic.Name)
		fresh = fresh || i == 0 && err == nil
	}
	for m.Check(ctx, group, time.Hour) != nil && pause.For(ctx, 10*time.Millisecond) {
	}
	return fresh
}

func (m *made) Open(ctx context.Context, group string) (claimlog.Log, error) {
	m.ready(group)
	return m.Logs.Open(ctx, group)
}

func (m *made) Registry(group string) claimlog.Registry {
	m.ready(group)
	return m.Logs.Registry(group)
}

func TestConformance(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logtest.Conformance(t, newMade(t, brokers, 4))
	})
}

func TestConformanceOfSeveralProcesses(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs := newMade(t, brokers, 2)
		logtest.OfSeveralProcesses(t, logs, logs)
	})
}

func TestNamesOfTopics(t *testing.T) {
	names := func(o kafkalog.Options, group string) []string {
		topics := kafkalog.New(o).Topics(group, 1, time.Hour)
		return []string{topics[0].Name, topics[1].Name}
	}
	for _, c := range []struct {
		o    kafkalog.Options
		want []string
	}{
		{kafkalog.Options{}, []string{"orders-dedup.claims", "orders-dedup.claims.scopes"}},
		{kafkalog.Options{Topic: "internal.{group}.log"},
			[]string{"internal.orders-dedup.log", "internal.orders-dedup.log.scopes"}},
	} {
		if got := names(c.o, "orders-dedup"); !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	seen := map[string]bool{}
	for _, group := range []string{"a/b", "a:b", "a b", "a_b", "", strings.Repeat("x", 250),
		strings.Repeat("x", 251)} {
		topic := names(kafkalog.Options{}, group)[1]
		if seen[topic] || len(topic) > 249 || strings.ContainsAny(topic, "/: ") {
			t.Errorf("group %q has topic %q", group, topic)
		}
		seen[topic] = true
	}
}

// Topic is the name of the topic with a group's claims.
func (m *made) Topic(group string) string { return m.Topics(group, 1, time.Hour)[0].Name }
