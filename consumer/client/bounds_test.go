package client

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestBoundsShowWhatAnOpenTransactionHides(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "orders", 1, nil)
		producer := testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic+"-producer"),
			kgo.TransactionTimeout(time.Minute))
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := producer.ProduceSync(
				t.Context(), &kgo.Record{Topic: topic},
			).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		c := askingFor(t, brokers, topic)
		bounds, err := c.Bounds(t.Context())
		if want := (consumer.Bounds{First: 0, End: 0, High: 5}); err != nil || bounds[0] != want {
			t.Errorf("while it is open: %+v, %v, want %+v", bounds[0], err, want)
		}
		if err := producer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 30*time.Second, "nothing hidden", func() bool {
			bounds, err := c.Bounds(t.Context())
			return err == nil && bounds[0].End == bounds[0].High && bounds[0].End >= 5
		})
	})
}
