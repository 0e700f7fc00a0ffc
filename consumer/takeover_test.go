package consumer

import (
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// abandoned is a member that wrote a fence and died before the end of its transaction.
type abandoned struct {
	options Options
	client  *kgo.Client
	topic   string
}

func abandon(t *testing.T, brokers []string) abandoned {
	t.Helper()
	topic := testkit.Topic(t, brokers, "fence", 2, nil)
	connection := []kgo.Opt{kgo.SeedBrokers(brokers...)}
	a := abandoned{
		options: Options{
			Connection: connection, ConsumerGroup: topic + "-group", FenceTopic: topic, Member: topic + "-group-0",
			Logger: slog.New(slog.DiscardHandler),
		},
		client: newClient(t, brokers, kgo.TransactionalID(topic+"-group-0")), topic: topic,
	}
	w := &writer{t, a.client, topic}
	w.transaction(kgo.TryCommit, 10, 0)
	if err := a.client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := a.client.ProduceSync(t.Context(), fenceRecord(topic, "orders", 0, upTo(20))).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestATakeoverEndsWhatThePredecessorLeftOpen(t *testing.T) {
	clusters(t, func(t *testing.T, brokers []string) {
		a := abandon(t, brokers)
		if err := takeOver(t.Context(), &a.options); err != nil {
			t.Fatal(err)
		}
		reader := newClient(t, brokers)
		got, err := readFences(t.Context(), reader, a.topic, "orders", []int32{0, 1}, fencePatience)
		if err != nil || got[0].Next() != 10 {
			t.Errorf("got %+v, %v", got, err)
		}
		if err := a.client.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
			t.Error("the predecessor could commit")
		}
		described, err := kadm.NewClient(reader).DescribeTransactions(t.Context(), a.options.Member)
		if err != nil || described[a.options.Member].State == "Ongoing" {
			t.Errorf("got %+v, %v", described, err)
		}
		if err := takeOver(t.Context(), &a.options); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}
