package testkit

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicLimit bounds the creation of a topic; a real broker under load takes a second or two.
const topicLimit = time.Minute

// FakeKafka starts a cluster of one broker that lives in this process, and returns its addresses
// too. It ends with the test: after what the test cleans up itself, provided that was set up later.
func FakeKafka(t testing.TB, opts ...kfake.Opt) (*kfake.Cluster, []string) {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatalf("start fake kafka: %v", err)
	}
	t.Cleanup(cluster.Close)
	return cluster, cluster.ListenAddrs()
}

// Kafkas runs a test on a fake Kafka of n brokers, and on the real one.
func Kafkas(t *testing.T, fakes int, test func(t *testing.T, brokers []string)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) {
		_, brokers := FakeKafka(t, kfake.NumBrokers(fakes))
		test(t, brokers)
	})
	t.Run("real", func(t *testing.T) { test(t, Kafka(t)) })
}

// KafkaClient is a client that produces to the partitions that its records name. It is closed with
// the test.
func KafkaClient(t testing.TB, brokers []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Topic creates a topic that no other test knows, with replication factor 1, and returns its name,
// which begins with name. Every partition has a leader when it returns. The topic stays behind.
func Topic(
	t testing.TB, brokers []string, name string, partitions int32, configs map[string]string,
) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), topicLimit)
	defer cancel()
	topic := name + "-" + suffix()
	admin := kadm.NewClient(client)
	// A broker that is told to close connections soon may do so before a busy machine has used one.
	for cut := true; cut && ctx.Err() == nil; cut = errors.As(err, new(*kgo.ErrFirstReadEOF)) {
		_, err = admin.CreateTopic(ctx, partitions, 1, pointers(configs), topic)
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Fatalf("create topic %s: %v", topic, err)
	}
	Eventually(t, topicLimit, "a leader for each partition of "+topic, func() bool {
		return hasLeaders(ctx, admin, topic, partitions)
	})
	return topic
}

func pointers(configs map[string]string) map[string]*string {
	p := make(map[string]*string, len(configs))
	for key, value := range configs {
		p[key] = &value
	}
	return p
}

func hasLeaders(ctx context.Context, admin *kadm.Client, topic string, partitions int32) bool {
	details, err := admin.ListTopics(ctx, topic)
	if err != nil || len(details[topic].Partitions) != int(partitions) {
		return false
	}
	for _, p := range details[topic].Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return true
}

// suffix tells apart what several tests and runs create on one server.
func suffix() string { return strings.ToLower(rand.Text()[:8]) }
