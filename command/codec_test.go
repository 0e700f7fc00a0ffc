package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Who reads the input can read the clean topic: it has the input's codecs, and none that a reader
// may lack. A file that names one keeps it.
func TestTheCleanTopicHasTheCodecsOfTheInput(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		for compression, want := range map[string][]uint8{
			"input": {0, 1, 4}, "snappy": {2, 2, 2},
		} {
			topic := testkit.Topic(t, brokers, "codec", 1, nil)
			setting := ""
			if compression != "input" { // the default
				setting = ", compression: " + compression
			}
			path := filepath.Join(t.TempDir(), "kdedup.yaml")
			file := fmt.Sprintf("instance: one\nkafka: {brokers: [%q]}\nserver: {listen: "+
				"'127.0.0.1:0'}\nstore: {type: embedded, embedded: {path: %q}}\ntopics:\n"+
				"  - {input: %[3]s, output: %[3]s.clean, consumer_group: %[3]s-dedup, "+
				"dead_letter_topic: %[3]s.dlq, message_id: {from: key}%s}\n", brokers[0],
				filepath.Join(t.TempDir(), "store"), topic, setting)
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
				t.Fatalf("setup: %d: %s", code, text)
			}
			p := &place{t: t, client: testkit.KafkaClient(t, brokers), broker: brokers[0],
				input: topic, path: path}
			for i, codec := range []kgo.CompressionCodec{kgo.NoCompression(),
				kgo.GzipCompression(), kgo.ZstdCompression()} {
				producer := testkit.KafkaClient(t, brokers, kgo.ProducerBatchCompression(codec))
				if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: topic,
					Key: fmt.Append(nil, i), Value: []byte(strings.Repeat("again ", 1000))},
				).FirstErr(); err != nil {
					t.Fatal(err)
				}
				p.runUntil(int64(i + 1))
			}
			var got []uint8
			testkit.ReadCommitted(t, topic+".clean", func(r *kgo.Record) {
				got = append(got, r.Attrs.CompressionType())
			}, kgo.SeedBrokers(brokers...))
			if !slices.Equal(got, want) {
				t.Errorf("compression: %s: the batches have the formats %v, not %v", compression,
					got, want)
			}
			_, text := kdedup(t.Context(), "validate", "-c", path)
			told := strings.Contains(text, "whose newest records have none and gzip and zstd")
			if told != (compression == "input") {
				t.Errorf("compression: %s: validate says %s", compression, text)
			}
		}
	})
}
