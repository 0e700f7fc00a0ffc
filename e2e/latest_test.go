package e2e_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// latest is a deployment with start: latest, whose inputs have few partitions.
type latest struct {
	*deployment
	sent map[string]map[int32]int // that are to be read, by topic and partition
}

// newLatest makes a deployment for an input, or for a pattern that begins with its name.
func newLatest(t *testing.T, pattern bool, partitions int32) *latest {
	t.Helper()
	d := &deployment{t: t, brokers: testkit.Kafka(t)}
	d.connect()
	d.input = testkit.Topic(t, d.brokers, "e2e.latest", partitions, nil)
	d.group = d.input + "-dedup"
	d.config = filepath.Join(t.TempDir(), "kdedup.yaml")
	input, name := d.input, d.input
	if pattern {
		input, name = fmt.Sprintf("{pattern: '%s-.'}", d.input), "{topic}"
	}
	text := fmt.Sprintf(`
kafka: {brokers: %q}
store: %s
server: {listen: "127.0.0.1:0"}
topics:
  - input: %s
    output: "%s.clean"
    consumer_group: "%s-dedup"
    message_id: {from: header, name: message-id}
    dead_letter_topic: "%s.dlq"
    start: latest
    lanes: 1
    auto_setup: true
`, strings.Join(d.brokers, ","), embeddedStore(t), input, name, name, name)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &latest{d, make(map[string]map[int32]int)}
}

func (d *latest) produce(topic string, partition int32, n int, read bool) {
	d.t.Helper()
	for range n {
		id := []kgo.RecordHeader{{Key: "message-id", Value: []byte(rand.Text())}}
		// The client may not know of a new partition yet.
		testkit.Eventually(d.t, time.Minute, "a record is taken", func() bool {
			record := &kgo.Record{Topic: topic, Partition: partition, Headers: id}
			return d.client.ProduceSync(d.t.Context(), record).FirstErr() == nil
		})
	}
	if d.sent[topic] == nil {
		d.sent[topic] = make(map[int32]int)
	}
	if read {
		d.sent[topic][partition] += n
	}
}

// mustArrive waits for what is to be read, and fails if there is more.
func (d *latest) mustArrive(topic string) {
	d.t.Helper()
	d.waitLeader(topic + ".clean") // of a pattern: it is made within 33 s
	var got map[int32]int
	ctx, cancel := context.WithTimeout(d.t.Context(), 90*time.Second)
	defer cancel()
	for done := false; !done && ctx.Err() == nil; {
		got = make(map[int32]int)
		testkit.ReadCommitted(d.t, topic+".clean", func(r *kgo.Record) {
			got[r.Partition]++
		}, kgo.SeedBrokers(d.brokers...))
		done = true
		for p, n := range d.sent[topic] {
			done = done && got[p] >= n
		}
	}
	for p, n := range d.sent[topic] {
		if got[p] != n {
			d.t.Errorf("partition %d of %s: %d of %d records", p, topic, got[p], n)
		}
	}
}

func (d *latest) widen(to int, topics ...string) {
	d.t.Helper()
	widen(d.t, d.admin, to, topics...)
	d.connect() // a client that knows the partitions
}

func (d *latest) create(topic string) {
	d.t.Helper()
	if _, err := d.admin.CreateTopic(d.t.Context(), 1, 1, nil, topic); err != nil {
		d.t.Fatal(err)
	}
	d.waitLeader(topic)
}

func (d *latest) waitLeader(topic string) {
	d.t.Helper()
	testkit.Eventually(d.t, time.Minute, "a leader of "+topic, func() bool {
		details, err := d.admin.ListTopics(d.t.Context(), topic)
		return err == nil && details[topic].Err == nil && len(details[topic].Partitions) > 0 &&
			details[topic].Partitions[0].Leader >= 0
	})
}

// The old records of partition 0 are not read; all of partition 1 is, which came while it ran.
func TestAGrownPartitionIsReadFromItsBeginningWithStartLatest(t *testing.T) {
	t.Parallel()
	d := newLatest(t, false, 1)
	d.produce(d.input, 0, 5, false)
	one := d.start("one")
	one.waitReady()
	d.widen(2, d.input, d.input+".clean", d.input+"-dedup.fence")
	d.produce(d.input, 1, 10, true)
	one.kill()
	two := d.start("one")
	d.produce(d.input, 1, 1, true)
	d.produce(d.input, 0, 1, true)
	d.mustArrive(d.input)
	two.stop()
}

// One topic is there at the first start. One comes while the process runs, one while none does.
func TestALaterTopicOfAPatternIsReadFromItsBeginningWithStartLatest(t *testing.T) {
	t.Parallel()
	d := newLatest(t, true, 1)
	a, b, c := d.input+"-a", d.input+"-b", d.input+"-c"
	d.create(a)
	d.produce(a, 0, 5, false)
	one := d.start("one")
	one.waitReady()
	d.create(b)
	d.produce(b, 0, 10, true)
	d.produce(a, 0, 1, true)
	d.mustArrive(b)
	one.stop()
	d.create(c)
	d.produce(c, 0, 10, true)
	two := d.start("one")
	for _, topic := range []string{a, b, c} {
		d.produce(topic, 0, 1, true)
		d.mustArrive(topic)
	}
	two.stop()
}

// The group's offsets expire after a long stop, when nothing had come to partition 1 yet.
func TestExpiredOffsetsOfIdlePartitionsSkipNothingWithStartLatest(t *testing.T) {
	t.Parallel()
	d := newLatest(t, false, 2)
	d.produce(d.input, 0, 5, false)
	d.produce(d.input, 1, 5, false)
	one := d.start("one")
	one.waitReady()
	d.produce(d.input, 0, 3, true)
	d.mustArrive(d.input)
	one.stop()
	expired := make(kadm.TopicsSet)
	expired.Add(d.input, 0, 1)
	if answers, err := d.admin.DeleteOffsets(t.Context(), d.group, expired); err != nil ||
		answers.Error() != nil {
		t.Fatal(err, answers.Error())
	}
	d.produce(d.input, 0, 5, true)
	d.produce(d.input, 1, 5, true)
	two := d.start("one")
	d.mustArrive(d.input)
	if n := two.counter("kdedup_input_skipped_offsets_total"); n != 0 {
		t.Errorf("the second start says that it skips %v offsets", n)
	}
	two.stop()
}
