package client

import (
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// optionsOf are those of a member of the fence topic's group.
func optionsOf(t *testing.T, brokers []string, fences, member string) *Options {
	return &Options{
		Options: consumer.Options{
			TransactionTimeout: 15 * time.Second,
			ConsumerGroup:      fences + "-group", FenceTopic: fences, Input: "orders",
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		},
		Connection:      func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(brokers...)} },
		TransactionalID: member,
	}
}

// writer writes fences as the lanes do.
type writer struct {
	t      *testing.T
	client *kgo.Client
	topic  string
}

func upTo(next int64) fence.Fence {
	return fence.Fence{}.Advance(fence.Span{Next: next, LeaderEpoch: 1})
}

// transaction writes a fence to a partition and ends as told.
func (w *writer) transaction(end kgo.TransactionEndTry, next int64, partition int32) {
	w.t.Helper()
	if err := w.client.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.ProduceSync(
		w.t.Context(), fence.Record(w.topic, "orders", partition, upTo(next)),
	).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.EndTransaction(w.t.Context(), end); err != nil {
		w.t.Fatal(err)
	}
}

// abandoned is a member that wrote a fence and died before the end of its transaction.
type abandoned struct {
	options Options
	client  *kgo.Client
	topic   string
}

func abandon(t *testing.T, brokers []string) abandoned {
	t.Helper()
	topic := testkit.Topic(t, brokers, "fence", 2, nil)
	a := abandoned{
		options: *optionsOf(t, brokers, topic, topic+"-group-0"),
		client:  testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic+"-group-0")),
		topic:   topic,
	}
	w := &writer{t, a.client, topic}
	w.transaction(kgo.TryCommit, 10, 0)
	if err := a.client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := a.client.ProduceSync(
		t.Context(), fence.Record(topic, "orders", 0, upTo(20)),
	).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestATakeoverEndsWhatThePredecessorLeftOpen(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		a := abandon(t, brokers)
		if err := takeOver(t.Context(), &a.options); err != nil {
			t.Fatal(err)
		}
		reader := testkit.KafkaClient(t, brokers)
		got, err := fence.Read(t.Context(), reader, a.topic, "orders", []int32{0, 1},
			fence.Patience)
		if err != nil || got.Fences[0].Next() != 10 {
			t.Errorf("got %+v, %v", got, err)
		}
		if err := a.client.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
			t.Error("the predecessor could commit")
		}
		described, err := kadm.NewClient(reader).DescribeTransactions(t.Context(),
			a.options.TransactionalID)
		if err != nil || described[a.options.TransactionalID].State == "Ongoing" {
			t.Errorf("got %+v, %v", described, err)
		}
		if err := takeOver(t.Context(), &a.options); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}
