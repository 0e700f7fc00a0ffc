package servers

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestKafkaKeepsItsDataOverKillAndRestart(t *testing.T) {
	Need(t)
	kafka, err := StartKafka(t.Context(), KafkaOptions{Dir: t.TempDir(), Heap: "256m"})
	ForTest(t, kafka, err)
	createTopic(t, kafka, "orders")
	commitRecord(t, kafka, "orders", "first")
	wantRecords(t, kafka, "orders", "first")

	kafka.Kill()
	if err := kafka.Pause(); err == nil {
		t.Error("a killed broker can be paused")
	}
	if err := kafka.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	commitRecord(t, kafka, "orders", "second")
	wantRecords(t, kafka, "orders", "first", "second")
	if err := kafka.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := kafka.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, kafka, "orders", "first", "second")
}

func TestStartReportsAServerThatEndsWithItsLog(t *testing.T) {
	Need(t)
	config := map[string]string{"log.retention.ms": "soon"}
	_, err := StartKafka(t.Context(), KafkaOptions{Dir: t.TempDir(), Heap: "256m", Config: config})
	wantError(t, err, "Invalid value soon")
}

func TestStartNeedsADirectory(t *testing.T) {
	_, err := StartKafka(t.Context(), KafkaOptions{})
	wantError(t, err, "start kafka: no Dir in the options")
}

func createTopic(t *testing.T, kafka *Server, topic string) {
	t.Helper()
	client := kafkaClient(t, kafka)
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

// commitRecord produces one record in a transaction of its own. The transaction's marker comes
// later: a broker that stops before it can be read may never write it.
func commitRecord(t *testing.T, kafka *Server, topic, value string) {
	t.Helper()
	client := kafkaClient(t, kafka, kgo.TransactionalID("test-"+value),
		kgo.DefaultProduceTopic(topic))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
}

func wantRecords(t *testing.T, kafka *Server, topic string, want ...string) {
	t.Helper()
	client := kafkaClient(t, kafka, kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	for len(got) < len(want) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func kafkaClient(t *testing.T, kafka *Server, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(kafka.Addr()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
