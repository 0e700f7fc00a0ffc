package forwarder_test

import (
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
