package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Two records have one ID and differ. The letter, the log and the page name in what, whether the
// owner stands in the same batch, is of an earlier one, or of another topic of the scope.
func TestWhatAConflictDiffersInIsToldWhereverItIsLookedFor(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "orders", 2, nil)
	other := testkit.Topic(t, brokers, "returns", 2, nil)
	path := write(t, brokers, fmt.Sprintf(`
  - {input: %s, output: %[1]s.clean, consumer_group: %[1]s.dedup, dead_letter_topic: %[1]s.dlq, on_conflict: dead_letter,
     message_id: {from: json, path: id}, scope: shared, scope_group: all}
  - {input: %[2]s, output: %[2]s.clean, consumer_group: %[2]s.dedup, dead_letter_topic: %[2]s.dlq, on_conflict: dead_letter,
     message_id: {from: json, path: id}, scope: shared, scope_group: all}`, topic, other))
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	client := testkit.KafkaClient(t, brokers)
	send := func(topic string, partition int32, key, value string) {
		t.Helper()
		err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition,
			Key: []byte(key), Value: []byte(value)}).FirstErr()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, path)
	url := r.url()
	forwarded := func(topic string, n int) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "the first records", func() bool {
			return strings.Contains(get(t, url+"/metrics"), fmt.Sprintf(
				`kdedup_records_total{outcome="forwarded",topic=%q} %d`, topic, n))
		})
	}
	send(topic, 0, "k", `{"id":"1","total":5,"at":"x"}`)
	forwarded(topic, 1)
	for _, c := range []struct{ topic, key, value, want string }{
		{topic, "k", `{"id":"1","total":6,"at":"y"}`, "the value in at, total"},
		{topic, "l", `{"id":"1","total":5,"at":"x"}`, "the key alone"},
		{other, "k", `{"id":"1","total":5}`, "the value in at"},
	} {
		// a comparison that a loaded machine does not end in time is left out: another copy comes
		testkit.Eventually(t, time.Minute, "a letter that says: "+c.want, func() bool {
			before := count(t, c.topic+".dlq", brokers)
			send(c.topic, 1, c.key, c.value)
			testkit.Eventually(t, time.Minute, "the letter", func() bool {
				return count(t, c.topic+".dlq", brokers) > before
			})
			return lastDiffers(t, c.topic+".dlq", brokers) == c.want
		})
		testkit.Eventually(t, time.Minute, "the page with "+c.want, func() bool {
			return strings.Contains(get(t, url+"/"), "other: "+c.want)
		})
	}
	r.stopsWell()
	if log := r.out.String(); !strings.Contains(log, "what differs: the value in at, total") {
		t.Errorf("the log does not name the fields:\n%s", log)
	}
}

func count(t *testing.T, topic string, brokers []string) (n int) {
	t.Helper()
	testkit.ReadCommitted(t, topic, func(*kgo.Record) { n++ }, kgo.SeedBrokers(brokers...))
	return n
}

func lastDiffers(t *testing.T, topic string, brokers []string) string {
	t.Helper()
	var last forwarder.Letter
	testkit.ReadCommitted(t, topic, func(r *kgo.Record) {
		opened, err := forwarder.Open(r)
		if err != nil {
			t.Error(err)
		}
		last = opened
	}, kgo.SeedBrokers(brokers...))
	return last.Differs
}
