package client

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
)

// An operator skips the record that waits, while a lane may be about to pass others.
func TestTheNextRecordIsKnownWhenOpenTransactionsHaveEnded(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t)
	input, fences := testkit.Topic(t, brokers, "orders", 1, nil),
		testkit.Topic(t, brokers, "fence", 1, nil)
	records := make([]*kgo.Record, 30)
	for i := range records {
		records[i] = &kgo.Record{Topic: input, Value: []byte("order")}
	}
	client := testkit.KafkaClient(t, brokers)
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	lane := testkit.KafkaClient(t, brokers, kgo.TransactionalID(fences))
	write := func(next int64) {
		t.Helper()
		if err := lane.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := lane.ProduceSync(
			t.Context(), fence.Record(fences, input, 0, upTo(next)),
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	commit := func() {
		t.Helper()
		if err := lane.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	write(10)
	commit()
	write(20)

	reading, once := make(chan struct{}), sync.Once{}
	cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		once.Do(func() { close(reading) })
		return nil, nil, false
	})
	var found *kgo.Record
	var err error
	var asking sync.WaitGroup
	asking.Go(func() {
		g := Group{Name: fences + "-group", Input: input, FenceTopic: fences}
		found, _, err = g.Next(t.Context(), client, []kgo.Opt{kgo.SeedBrokers(brokers...)}, 0)
	})
	<-reading
	commit()
	asking.Wait()
	if err != nil || found.Offset != 20 {
		t.Errorf("got %+v, %v", found, err)
	}
}
