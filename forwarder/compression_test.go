package forwarder_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestBatchesAreCompressedAsConfigured(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	output := testkit.Topic(t, brokers, "clean", 1, nil)
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(),
		kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for _, codec := range codecs {
		topics := &forwarder.Topics{Output: output, Compression: codec}
		client := testkit.KafkaClient(t, brokers, topics.Producer()...)
		r := &kgo.Record{Topic: output, Value: []byte(strings.Repeat("again ", 1000))}
		client.Produce(t.Context(), r, nil)
		if err := client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var got []uint8
	testkit.ReadCommitted(t, output, func(r *kgo.Record) {
		got = append(got, r.Attrs.CompressionType())
	}, kgo.SeedBrokers(brokers...))
	for i := range codecs { // the numbers of the formats are in this order
		if i >= len(got) || int(got[i]) != i {
			t.Fatalf("the batches have the formats %v", got)
		}
	}
}

// What is sent has the codec of the records that it was made of, from batch to batch.
func TestBatchesAreCompressedAsTheInputIs(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	input := testkit.Topic(t, brokers, "input", 1, nil)
	output := testkit.Topic(t, brokers, "clean", 1, nil)
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(),
		kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	value := []byte(strings.Repeat("again ", 1000))
	topics := &forwarder.Topics{Output: output, Input: forwarder.NewInputCodec()}
	client := testkit.KafkaClient(t, brokers, topics.Producer()...)
	random := rand.New(rand.NewPCG(1, 1))
	var want []uint8
	for range 20 {
		codec := random.IntN(len(codecs))
		producer := testkit.KafkaClient(t, brokers, kgo.ProducerBatchCompression(codecs[codec]))
		r := &kgo.Record{Topic: input, Value: value}
		if err := producer.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		want = append(want, uint8(codec)) // the numbers of the formats are in this order
	}
	testkit.ReadCommitted(t, input, func(r *kgo.Record) {
		batch := []*kgo.Record{r}
		if random.IntN(2) == 0 { // with one that compression made no smaller
			batch = append(batch, &kgo.Record{Value: []byte("x")})
		}
		o := topics.NewOutgoing(len(batch))
		for _, r := range batch {
			if !o.Clean(r) {
				t.Error("a record is too large")
			}
		}
		if err := o.Send(t.Context(), client, forwarder.Isolation{}); err != nil {
			t.Error(err)
		}
	}, kgo.SeedBrokers(brokers...))
	var got []uint8
	testkit.ReadCommitted(t, output, func(r *kgo.Record) {
		if len(r.Value) == len(value) {
			got = append(got, r.Attrs.CompressionType())
		}
	}, kgo.SeedBrokers(brokers...))
	if !slices.Equal(got, want) {
		t.Errorf("the batches have the formats\n%v, those of the input\n%v", got, want)
	}
}
