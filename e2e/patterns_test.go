package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A process reads the topics of a pattern. It is killed, ten more topics come and one goes, and
// another process goes on.
func TestTheTopicsOfAPatternAreCleanedThroughAKill(t *testing.T) {
	t.Parallel()
	n := testkit.Number(t, "KDEDUP_TENANTS", 12)
	d := newTenants(t)
	d.create(0, n)
	for i := range n {
		d.produceOrders(i, 1)
	}
	one := d.start("one")
	testkit.Eventually(t, 5*time.Minute, "some topics are clean", func() bool {
		return one.forwarded() > n
	})
	one.kill()
	d.create(n, n+5)
	two := d.start("one")
	d.create(n+5, n+10)
	for i := 1; i < n+10; i++ {
		d.produceOrders(i, 2)
	}
	if err := d.client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.admin.DeleteTopic(t.Context(), d.topic(0)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Minute, "the pipelines of all topics but the one that is gone",
		func() bool {
			inputs := two.inputs()
			return len(inputs) == n+9 && !inputs[d.topic(0)]
		})
	for i := 1; i < n+10; i++ {
		d.mustHaveEachOnce(i)
	}
	two.waitReady()
	t.Logf("%d pipelines: %s", n+9, two.footprint())
	d.mustHaveMadeNothingElse(n + 10)
	two.stop()
}

// tenants is a deployment whose input is a pattern.
type tenants struct {
	*deployment
	prefix string
	sent   map[int]int64 // records, by topic
}

func newTenants(t *testing.T) *tenants {
	t.Helper()
	brokers := testkit.Kafka(t)
	s := tenantsAt(t, brokers, testkit.Topic(t, brokers, "e2e.tenant", 1, nil),
		`dead_letter_topic: "{topic}.dlq"
    duplicates_topic: "{topic}.duplicates"
    lanes: 1`)
	t.Cleanup(s.clear)
	return s
}

// tenantsAt makes one for the topics with a prefix; the settings are of its entry.
func tenantsAt(t *testing.T, brokers []string, prefix, settings string) *tenants {
	t.Helper()
	d := &deployment{t: t, brokers: brokers}
	d.connect()
	d.config = filepath.Join(t.TempDir(), "kdedup.yaml")
	s := &tenants{d, prefix, make(map[int]int64)}
	text := fmt.Sprintf(`
kafka: {brokers: %q}
store: %s
server: {listen: "127.0.0.1:0"}
topics:
  - input: {pattern: '%s-.+'}
    output: "{topic}.clean"
    consumer_group: "{topic}-dedup"
    message_id: {from: header, name: message-id}
    auto_setup: true
    %s
`, strings.Join(d.brokers, ","), embeddedStore(t), s.prefix, settings)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (d *tenants) topic(i int) string { return fmt.Sprintf("%s-%d", d.prefix, i) }

func (d *tenants) create(from, to int) {
	d.t.Helper()
	var names []string
	for i := from; i < to; i++ {
		names = append(names, d.topic(i))
	}
	answers, err := d.admin.CreateTopics(d.t.Context(), 1, 1, nil, names...)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// orders is how many IDs each round has for a topic; every one comes twice.
const orders = 10

func (d *tenants) produceOrders(topic, round int) {
	d.t.Helper()
	d.sent[topic] += 2 * orders
	for copies := range 2 {
		for id := range orders {
			d.client.Produce(d.t.Context(), &kgo.Record{
				Topic: d.topic(topic), Value: fmt.Appendf(nil, "round %d", round),
				Headers: []kgo.RecordHeader{{Key: "message-id",
					Value: fmt.Appendf(nil, "%d-%d-%d", topic, round, id)}},
			}, func(_ *kgo.Record, err error) {
				if err != nil {
					d.t.Errorf("produce copy %d: %v", copies, err)
				}
			})
		}
	}
}

func (d *tenants) mustHaveEachOnce(topic int) {
	d.t.Helper()
	clean := d.topic(topic) + ".clean"
	testkit.Eventually(d.t, 5*time.Minute, "the last order of "+d.topic(topic), func() bool {
		committed, err := d.admin.FetchOffsets(d.t.Context(), d.topic(topic)+"-dedup")
		at, _ := committed.Lookup(d.topic(topic), 0)
		return err == nil && at.At == d.sent[topic]
	})
	d.waitStable(clean)
	seen := make(map[string]int)
	testkit.ReadCommitted(d.t, clean, func(r *kgo.Record) {
		seen[string(r.Headers[0].Value)]++
	}, kgo.SeedBrokers(d.brokers...))
	for id, n := range seen {
		if n != 1 {
			d.t.Errorf("%s: %s is there %d times", clean, id, n)
		}
	}
	if want := int(d.sent[topic]) / 2; len(seen) != want {
		d.t.Errorf("%s has %d IDs, want %d", clean, len(seen), want)
	}
}

// mustHaveMadeNothingElse compares the topics with those of n inputs.
func (d *tenants) mustHaveMadeNothingElse(n int) {
	d.t.Helper()
	want := map[string]bool{}
	for i := range n {
		for _, suffix := range []string{"", ".clean", ".dlq", ".duplicates", "-dedup.fence"} {
			want[d.topic(i)+suffix] = i > 0 || suffix != "" // the first one is gone
		}
	}
	for _, topic := range d.made() {
		if !want[topic] {
			d.t.Errorf("nobody wanted %s", topic)
		}
		delete(want, topic)
	}
	for topic, wanted := range want {
		if wanted {
			d.t.Errorf("there is no %s", topic)
		}
	}
}

// made are the topics of the deployment.
func (d *tenants) made() (names []string) {
	d.t.Helper()
	all, err := d.admin.ListTopics(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, name := range all.Names() {
		if strings.HasPrefix(name, d.prefix+"-") {
			names = append(names, name)
		}
	}
	return names
}

// clear takes the topics away from a broker that all tests share.
func (d *tenants) clear() {
	if _, err := d.admin.DeleteTopics(context.Background(), d.made()...); err != nil {
		d.t.Error(err)
	}
}

func (i *instance) forwarded() int { return i.outcomes()["forwarded"] }

// inputs are those of the pipelines that run.
func (i *instance) inputs() map[string]bool {
	i.t.Helper()
	all := make(map[string]bool)
	for _, p := range i.status().Pipelines {
		all[p.Input] = true
	}
	return all
}

// footprint is what the process takes, with its connections to the brokers.
func (i *instance) footprint() string {
	i.t.Helper()
	connections := i.counter("kdedup_kafka_client_connects_total") -
		i.counter("kdedup_kafka_client_disconnects_total")
	return fmt.Sprintf("%.0f MiB resident, %.0f MiB heap, %.0f goroutines, %.0f files, "+
		"%.0f connections of lanes", i.gauge("process_resident_memory_bytes")/(1<<20),
		i.gauge("go_memstats_heap_inuse_bytes")/(1<<20), i.gauge("go_goroutines"),
		i.gauge("process_open_fds"), connections)
}
