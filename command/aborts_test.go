package command

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Some clients hand out the records of aborted transactions, so there are few. Processes that come
// and go in good order, reloads and stops end their batches. Only a rebalance that comes while a
// batch is forwarded takes it away: here there are six.
func TestWhatEndsInGoodOrderAbortsAtMostTheBatchThatARebalanceMeets(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "aborts", 6, nil)
		client := testkit.KafkaClient(t, brokers)
		folder := t.TempDir()
		write := func(instance string, records int) string {
			path := filepath.Join(folder, instance+".yaml")
			file := fmt.Sprintf("instance: %s\nkafka: {brokers: [%q]}\nserver: {listen: "+
				"'127.0.0.1:0'}\nstore: {type: kafka, kafka: {path: %q}}\nreload: {watch: true}\n"+
				"topics:\n  - {input: %[4]s, output: %[4]s.clean, consumer_group: %[4]s-dedup, "+
				"dead_letter_topic: %[4]s.dlq, message_id: {from: key}, batch_records: %d}\n",
				instance, brokers[0], filepath.Join(folder, instance), topic, records)
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		first := write("first", 50)
		if code, text := kdedup(t.Context(), "setup", "-c", first); code != 0 {
			t.Fatalf("setup: %d: %s", code, text)
		}
		sent := 0
		more := func() { // so that batches are at work while something happens
			var records []*kgo.Record
			for range 2000 {
				records = append(records, &kgo.Record{Topic: topic, Partition: int32(sent % 6),
					Key: fmt.Append(nil, sent)})
				sent++
			}
			if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		done := func() (n int64) {
			offsets, err := kadm.NewClient(client).FetchOffsets(t.Context(), topic+"-dedup")
			if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
				t.Fatal(err)
			}
			offsets.Each(func(o kadm.OffsetResponse) { n += max(0, o.At) })
			return n
		}
		begun := func() { // a part of what was sent
			at := done()
			testkit.Eventually(t, time.Minute, "a batch is committed", func() bool {
				return done() > at
			})
		}
		more()
		one := start(t, first)
		begun()
		more()
		two := start(t, write("second", 50))
		begun()
		more()
		write("first", 60) // a reload
		begun()
		more()
		two.stopsWell()
		more()
		begun()
		one.stopsWell()
		again := start(t, first)
		testkit.Eventually(t, time.Minute, "all is committed", func() bool {
			return done() == int64(sent)
		})
		again.stopsWell()
		committed, aborted := markersOf(t, brokers, client, topic+".clean")
		if committed == 0 || aborted > 6 {
			t.Errorf("%d transactions are committed, and %d aborted", committed, aborted)
		}
	})
}

// markersOf counts how the transactions ended that wrote to a topic.
func markersOf(
	t *testing.T, brokers []string, client *kgo.Client, topic string,
) (committed, aborted int) {
	t.Helper()
	log, err := logreader.Describe(t.Context(), client, topic, logreader.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	err = logreader.ReadAll(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, log,
		func(records []*kgo.Record) error {
			for _, r := range records {
				switch {
				case !r.Attrs.IsControl():
				case binary.BigEndian.Uint16(r.Key[2:]) == 1: // version, and type
					committed++
				default:
					aborted++
				}
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return committed, aborted
}
