package client

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// 320 MiB in two fetches, in batches that are each allowed.
func TestAClientUnpacksNoMoreThanWaitsForItsLane(t *testing.T) {
	const records, size = 40, 8 << 20
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "zeros", 2, nil)
	packing, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1),
		kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(2*size))
	if err != nil {
		t.Fatal(err)
	}
	defer packing.Close()
	for i := range records {
		if err := packing.ProduceSync(
			t.Context(), &kgo.Record{Topic: topic, Partition: int32(i % 2),
				Value: make([]byte, size)},
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	client, err := newClient(Options{UnpackedBytes: 2 * size}, kgo.SeedBrokers(brokers...),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.kafka.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next := make(map[int32]int64)
	for polled := 0; polled < records; {
		fetches := client.Poll(ctx, 1)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d records: %v", polled, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != next[r.Partition] || len(r.Value) != size {
				t.Fatalf("partition %d goes on at %d with %d bytes, not at %d", r.Partition,
					r.Offset, len(r.Value), next[r.Partition])
			}
			next[r.Partition]++
			polled++
		})
		if waiting := client.kafka.BufferedFetchBytes(); waiting > unpackAhead+size {
			t.Fatalf("%d MiB wait for the lane", waiting>>20)
		}
	}
}
