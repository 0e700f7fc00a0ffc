package client

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The broker refuses the first record of a client that has not met the topic yet. What was handed
// over behind it gets its partitions late: as late as the refusal, if that comes first.
func TestTheFirstFlushWritesNothingBehindARefusedRecord(t *testing.T) {
	const records = 200
	refuses := func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "first", 1, map[string]string{
			"message.timestamp.before.max.ms": "1000"})
		var once sync.Once
		refused := make(chan struct{})
		given := 0
		client, err := newClient(Options{UnpackedBytes: 1 << 20}, kgo.SeedBrokers(brokers...),
			kgo.ManualFlushing(),
			kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(
				func(string) func(*kgo.Record, int) int {
					return func(*kgo.Record, int) int {
						if given++; given == records/2 {
							select {
							case <-refused:
							case <-time.After(300 * time.Millisecond): // it waits for us
							}
						}
						return 0
					}
				})))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var mu sync.Mutex
		failed := make(map[*kgo.Record]bool)
		sent := make([]*kgo.Record, records)
		for i := range sent {
			sent[i] = &kgo.Record{Topic: topic, Value: []byte("v")}
			if i == 0 {
				sent[i].Timestamp = time.Now().Add(-time.Hour)
			}
			client.Produce(t.Context(), sent[i], func(r *kgo.Record, err error) {
				mu.Lock()
				defer mu.Unlock()
				if failed[r] = err != nil; err != nil {
					once.Do(func() { close(refused) })
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := client.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		written := 0
		for _, r := range sent {
			if !failed[r] {
				written++
			}
		}
		if written > 0 || len(failed) != records {
			t.Errorf("%d of %d records were written, behind one that was refused",
				written, len(failed))
		}
	}
	t.Run("fake", func(t *testing.T) {
		cluster, brokers := testkit.FakeKafka(t)
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidTimestamp,
			Count: 1})
		refuses(t, brokers)
	})
	t.Run("real", func(t *testing.T) { refuses(t, testkit.Kafka(t)) })
}

// A flush that ends early leaves nothing behind that a later one would wait for.
func TestAFlushAfterAnAbandonedOneWaitsForItsOwnRecords(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "later", 1, nil)
	client, err := newClient(Options{UnpackedBytes: 1 << 20}, kgo.SeedBrokers(brokers...),
		kgo.ManualFlushing())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 3 {
		ended, end := context.WithCancel(t.Context())
		end()
		client.Produce(t.Context(), &kgo.Record{Topic: topic + "-missing"}, nil)
		if err := client.Flush(ended); err == nil {
			t.Error("a flush without time has succeeded")
		}
		if err := client.kafka.AbortBufferedRecords(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := client.unassigned.n.Load(); n != 0 {
			t.Errorf("%d records are waited for", n)
		}
		client.Produce(t.Context(), &kgo.Record{Topic: topic}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if err := client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
