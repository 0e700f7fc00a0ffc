package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// spread produces a message to each of some partitions, and waits until those of the first ones are
// on the clean topic.
func (d *deployment) spread(id string, to, arrive int32) {
	d.t.Helper()
	d.connect() // a client that knows the partitions
	for p := range to {
		record := &kgo.Record{Topic: d.input, Partition: p, Value: []byte(id),
			Headers: []kgo.RecordHeader{{Key: "message-id",
				Value: []byte(id + "-" + string('a'+rune(p)))}}}
		if err := d.client.ProduceSync(d.t.Context(), record).FirstErr(); err != nil {
			d.t.Fatal(err)
		}
	}
	testkit.Eventually(d.t, time.Minute, id+" on the clean topic", func() bool {
		return d.arrived()[id] >= int(arrive)
	})
}

// arrived counts the messages of each value on the clean topic.
func (d *deployment) arrived() map[string]int {
	got := make(map[string]int)
	testkit.ReadCommitted(d.t, d.output(), func(r *kgo.Record) {
		got[string(r.Value)]++
	}, kgo.SeedBrokers(d.brokersOf(d.output())...))
	return got
}

func (d *deployment) widen(to int, topics ...string) {
	d.t.Helper()
	widen(d.t, d.admin, to, topics...)
}

// widen returns when the new partitions have leaders: the controller has answered before the broker
// that a client asks for the topic hears of them.
func widen(t *testing.T, admin *kadm.Client, to int, topics ...string) {
	t.Helper()
	answers, err := admin.UpdatePartitions(t.Context(), to, topics...)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the new partitions", func() bool {
		found, err := admin.ListTopics(t.Context(), topics...)
		return err == nil && !slices.ContainsFunc(topics, func(topic string) bool {
			led := 0
			for _, p := range found[topic].Partitions {
				if p.Err == nil && p.Leader >= 0 {
					led++
				}
			}
			return led < to
		})
	})
}

// The input alone gets one more partition, and then the output; kdedup widens the fence topic.
func TestOnePartitionMoreStopsNothingElse(t *testing.T) {
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deployAt(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, delivery,
			"session_timeout: 6s")
		one := d.start("one")
		one.waitReady()
		d.widen(partitions+1, d.input)
		d.spread("first", partitions+1, partitions)
		one.stop()
		two := d.start("one") // a start goes on, too
		two.waitReady()
		d.spread("second", partitions+1, partitions)
		testkit.Eventually(t, time.Minute, "the page says what waits", func() bool {
			return strings.Contains(two.readyz(), "[8] held at offset 0: topic "+d.output()+
				" has no partition 8")
		})
		testkit.Eventually(t, time.Minute, "the lag counts what waits", func() bool {
			return two.gauge("kdedup_consumer_lag") == 2
		})
		d.widen(partitions+1, d.output())
		testkit.Eventually(t, time.Minute, "what waited", func() bool {
			got := d.arrived()
			return got["first"] == partitions+1 && got["second"] == partitions+1
		})
		if n := two.counter("kdedup_lane_failures_total"); n > 0 {
			t.Errorf("%v lanes failed", n)
		}
		two.stop()
	})
}

// With auto_setup all of its topics follow the input, within half a minute or so.
func TestAWidenedInputIsFollowedWithAutoSetup(t *testing.T) {
	t.Parallel()
	d := prepare(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, exactlyOnce,
		"auto_setup: true")
	one := d.start("one")
	one.waitReady()
	d.spread("first", partitions, partitions)
	d.widen(partitions+2, d.input)
	d.spread("second", partitions+2, partitions+2)
	if n := one.counter("kdedup_lane_failures_total"); n > 0 {
		t.Errorf("%v lanes failed", n)
	}
	one.stop()
}
