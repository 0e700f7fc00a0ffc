package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// anyTime are the settings of a topic that takes every timestamp.
var anyTime = map[string]string{
	"message.timestamp.after.max.ms":  "9223372036854775807",
	"message.timestamp.before.max.ms": "9223372036854775807",
}

// odd is a record that a topic does not take, between others that it takes.
type odd struct {
	name                string
	output, deadLetters map[string]string // settings of the topics
	record              func(d *deployment, serial int) *kgo.Record
	headers             map[string]string // of its dead letter
	check               func(t *testing.T, in, dead *kgo.Record)
}

// hourAhead is the brokers' default since Kafka 4.0.
var hourAhead = map[string]string{"message.timestamp.after.max.ms": "3600000"}

var oddRecords = []odd{
	{
		name: "two hours ahead", output: hourAhead, deadLetters: hourAhead,
		record:  func(d *deployment, serial int) *kgo.Record { return d.at2h(serial, 2*time.Hour) },
		headers: map[string]string{"kdedup-reason": "invalid_timestamp"},
		check:   admittedTime,
	},
	{
		name: "two hours old", output: map[string]string{
			"message.timestamp.before.max.ms": "3600000"}, deadLetters: anyTime,
		record: func(d *deployment, serial int) *kgo.Record {
			return d.at2h(serial, -2*time.Hour)
		},
		headers: map[string]string{"kdedup-reason": "invalid_timestamp"},
		check: func(t *testing.T, in, dead *kgo.Record) {
			if !dead.Timestamp.Equal(in.Timestamp) {
				t.Errorf("a timestamp that the dead-letter topic takes was changed to %v",
					dead.Timestamp)
			}
		},
	},
	{
		name:   "without a key for a compacted topic",
		output: map[string]string{"cleanup.policy": "compact"},
		record: func(d *deployment, serial int) *kgo.Record {
			r := d.record(serial, 0, serial)
			r.Key = nil
			return r
		},
		headers: map[string]string{"kdedup-reason": "null_key"},
		check: func(t *testing.T, _, dead *kgo.Record) {
			if dead.Key != nil {
				t.Errorf("the dead letter has the key %q", dead.Key)
			}
		},
	},
	{
		name:        "without a key for compacted topics",
		output:      map[string]string{"cleanup.policy": "compact"},
		deadLetters: map[string]string{"cleanup.policy": "compact"},
		record: func(d *deployment, serial int) *kgo.Record {
			r := d.record(serial, 0, serial)
			r.Key = nil
			return r
		},
		headers: map[string]string{"kdedup-reason": "null_key", "kdedup-key": "made"},
		check: func(t *testing.T, in, dead *kgo.Record) {
			if want := fmt.Sprintf(
				"%s-%d@%d", in.Topic, in.Partition, in.Offset,
			); string(dead.Key) != want {
				t.Errorf("the dead letter has the key %q, want %q", dead.Key, want)
			}
		},
	},
	{
		name:        "without an ID, as large as the dead-letter topic admits",
		deadLetters: map[string]string{"max.message.bytes": "1000000"},
		record: func(d *deployment, serial int) *kgo.Record {
			r := d.record(serial, 0, serial)
			r.Key, r.Headers, r.Value = []byte("k"), nil, noise[:999_900]
			return r
		},
		headers: map[string]string{"kdedup-reason": "missing_id_absent",
			"kdedup-source-size": "999900"},
		check: func(t *testing.T, in, dead *kgo.Record) {
			sum := sha256.Sum256(in.Value)
			if got := headerOf(dead, "kdedup-source-sha256"); dead.Value != nil ||
				got != hex.EncodeToString(sum[:]) || string(dead.Key) != "k" {
				t.Errorf("the stub has the key %q, %d bytes and the sum %s, want %x", dead.Key,
					len(dead.Value), got, sum)
			}
		},
	},
}

func admittedTime(t *testing.T, in, dead *kgo.Record) {
	if age := time.Since(dead.Timestamp); age < 0 || age > time.Minute {
		t.Errorf("the dead letter is %v old", age)
	}
	if got, want := headerOf(dead, "kdedup-source-timestamp"),
		in.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z07:00"); got != want {
		t.Errorf("the original time is %s, want %s", got, want)
	}
}

func (d *deployment) at2h(serial int, from time.Duration) *kgo.Record {
	r := d.record(serial, 0, serial)
	r.Timestamp = time.Now().Add(from)
	return r
}

func headerOf(r *kgo.Record, key string) (value string) {
	for _, h := range r.Headers {
		if h.Key == key {
			value = string(h.Value)
		}
	}
	return value
}

// A record that its topic does not take holds up nobody: those around it come through, in order,
// and it is dead-lettered in a form that the dead-letter topic takes.
func TestARecordThatItsTopicRefusesHoldsUpNobody(t *testing.T) {
	t.Parallel()
	at := place{brokers: testkit.Kafka(t), store: embeddedStore(t)}
	for _, delivery := range []string{exactlyOnce, atLeastOnce} {
		for _, c := range oddRecords {
			t.Run(delivery+"/"+c.name, func(t *testing.T) {
				here := at
				here.store = embeddedStore(t)
				d := deployAt(t, here, delivery)
				d.waitTopics()
				d.alter(d.input, anyTime)
				d.alter(d.output(), c.output)
				d.alter(d.input+".dlq", c.deadLetters)
				before, in, after := d.record(8, 0, 8), c.record(d, 16), d.record(24, 0, 24)
				in.Partition = before.Partition
				for _, r := range []*kgo.Record{before, in, after, d.record(1, 0, 1)} {
					// its settings are new
					testkit.Eventually(t, time.Minute, "an input that takes the record",
						func() bool {
							return d.client.ProduceSync(t.Context(), r).FirstErr() == nil
						})
				}
				one := d.start("one")
				d.waitFor(1)
				d.waitStable(d.output())
				if diff := cmp.Diff(
					[][]byte{before.Value, after.Value},
					values(d.records(d.output())[before.Partition]),
				); diff != "" {
					t.Error("on the clean topic: ", diff)
				}
				dead := d.records(d.input + ".dlq")[before.Partition]
				if len(dead) != 1 {
					t.Fatalf("%d dead letters", len(dead))
				}
				c.headers["kdedup-source-offset"] = strconv.FormatInt(in.Offset, 10)
				for key, want := range c.headers {
					if got := headerOf(dead[0], key); got != want {
						t.Errorf("the dead letter's %s is %q, want %q", key, got, want)
					}
				}
				c.check(t, in, dead[0])
				if n := one.counter("kdedup_lane_failures_total"); n > 0 {
					t.Errorf("the lanes failed %v times", n)
				}
				if got := one.outcomes(); got["forwarded"] != 3 || got["dead_lettered"] != 1 {
					t.Errorf("the outcomes are %v", got)
				}
			})
		}
	}
}

// Where no dead letter can be written, or none shall be, the partition is held by itself and says
// so. It goes on when the reason is gone, without a loss, a repeat or a change of order.
func TestAPartitionIsHeldByItself(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{exactlyOnce, atLeastOnce} {
		t.Run(delivery, func(t *testing.T) {
			d := deployAt(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, delivery,
				"on_undeliverable: stop")
			d.waitTopics()
			d.alter(d.output(), map[string]string{"cleanup.policy": "compact"})
			const n = 400
			var records []*kgo.Record
			for i := range n {
				r := d.record(i, 0, i)
				if i == 8*10+3 {
					r.Key = nil
				}
				records = append(records, r)
			}
			one := d.start("one")
			// Partitions that move after the first try would be repeated with at_least_once.
			testkit.Eventually(t, time.Minute, "both lanes with their partitions", func() bool {
				return strings.Contains(one.text(), `lane=0 partitions="[`) &&
					strings.Contains(one.text(), `lane=1 partitions="[`)
			})
			one.waitReady()
			if err := d.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			want := d.input + "[3] held at offset 10: null_key: on_undeliverable is stop"
			testkit.Eventually(t, time.Minute, "a partition that says that it is held",
				func() bool {
					return strings.Contains(one.readyz(), want)
				})
			testkit.Eventually(t, time.Minute, "the others and what is before the record",
				func() bool {
					committed, _ := d.progress()
					return committed == n-n/partitions+10
				})
			one.waitReady()
			testkit.Eventually(t, time.Minute, "two more tries", func() bool {
				return strings.Count(one.text(), "batch given back") >= 3
			})
			d.alter(d.output(), map[string]string{"cleanup.policy": "delete"})
			d.waitFor(1)
			d.mustBeClean()
			if got := one.outcomes(); got["forwarded"] != n {
				t.Errorf("the outcomes are %v", got)
			}
			if n := one.counter("kdedup_lane_failures_total"); n > 0 {
				t.Errorf("the lanes failed %v times", n)
			}
			testkit.Eventually(t, 10*time.Second, "a page that says so no more", func() bool {
				return !strings.Contains(one.readyz(), "held")
			})
		})
	}
}

// A dead-letter topic that is deleted holds up only the partitions with dead letters, until it is
// back.
func TestADeadLetterTopicThatIsGoneHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{exactlyOnce, atLeastOnce} {
		t.Run(delivery, func(t *testing.T) {
			d := deployAt(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, delivery)
			d.waitTopics()
			one := d.start("one")
			one.waitReady()
			d.deleteTopic(d.input + ".dlq")
			records := []*kgo.Record{d.record(3, 0, 0),
				{Topic: d.input, Partition: 3, Value: []byte("no ID")}, d.record(11, 0, 1)}
			for i := range 100 {
				records = append(records, d.record(8*i, 0, i))
			}
			if err := d.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			want := d.input + "[3] held at offset 1: missing_id_absent: to " + d.input +
				".dlq: UNKNOWN_TOPIC"
			testkit.Eventually(t, 2*time.Minute, "a partition that says that it is held",
				func() bool {
					return strings.Contains(one.readyz(), want)
				})
			testkit.Eventually(t, time.Minute, "the other partition", func() bool {
				committed, _ := d.progress()
				return committed == 101
			})
			d.command("setup", "--skip-self-test")
			d.waitFor(1)
			clean := d.records(d.output())
			if len(clean[3]) != 2 || len(clean[0]) != 100 {
				t.Errorf("%d and %d records on the clean topic", len(clean[3]), len(clean[0]))
			}
			if dead := d.records(d.input + ".dlq"); len(dead[3]) != 1 {
				t.Errorf("%d dead letters", len(dead[3]))
			}
		})
	}
}

// An operator takes the record out of the way, and the partition goes on behind it.
func TestARecordThatAnOperatorSkipsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{exactlyOnce, atLeastOnce} {
		t.Run(delivery, func(t *testing.T) {
			d := deployAt(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, delivery,
				"on_undeliverable: stop")
			d.waitTopics()
			d.alter(d.output(), map[string]string{"cleanup.policy": "compact"})
			var records []*kgo.Record
			for i := range 10 {
				records = append(records, d.record(8*i+3, 0, i))
			}
			records[4].Key, records[7].Key = nil, nil
			if err := d.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			one := d.start("one")
			for _, at := range []struct{ offset, flag string }{{"4", "--drop"},
				{"7", "--dead-letter"}} {
				want := d.input + "[3] held at offset " + at.offset + ": null_key"
				testkit.Eventually(t, time.Minute, "a partition that says that it is held",
					func() bool {
						return strings.Contains(one.readyz(), want)
					})
				d.command("skip", "--partition", "3", "--offset", at.offset, at.flag, "--yes")
			}
			d.waitFor(1)
			if diff := cmp.Diff(
				values(append(records[:4:4], records[5], records[6], records[8], records[9])),
				values(d.records(d.output())[3]),
			); diff != "" {
				t.Error("on the clean topic: ", diff)
			}
			if diff := cmp.Diff(
				values(records[7:8]), values(d.records(d.input + ".dlq")[3]),
			); diff != "" {
				t.Error("on the dead-letter topic: ", diff)
			}
			if got := one.outcomes(); got["forwarded"] != 8 || got["dropped"] != 1 ||
				got["dead_lettered"] != 1 {
				t.Errorf("the outcomes are %v", got)
			}
		})
	}
}

// readyz is the text of /readyz.
func (i *instance) readyz() string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + i.address() + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// alter sets settings of a topic.
func (d *deployment) alter(topic string, settings map[string]string) {
	d.t.Helper()
	var changes []kadm.AlterConfig
	for key, value := range settings {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value})
	}
	if len(changes) == 0 {
		return
	}
	answers, err := d.admin.AlterTopicConfigs(d.t.Context(), changes, topic)
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		d.t.Fatal(err)
	}
	testkit.Eventually(d.t, time.Minute, "a broker that knows the settings of "+topic, func() bool {
		known, err := d.admin.DescribeTopicConfigs(d.t.Context(), topic)
		if err != nil || len(known) != 1 {
			return false
		}
		for _, c := range known[0].Configs {
			if want, set := settings[c.Key]; set && c.MaybeValue() != want {
				return false
			}
		}
		return known[0].Err == nil
	})
}

// records are those that a read_committed consumer sees, by partition.
func (d *deployment) records(topic string) map[int32][]*kgo.Record {
	d.t.Helper()
	found := make(map[int32][]*kgo.Record)
	testkit.ReadCommitted(d.t, topic, func(r *kgo.Record) {
		found[r.Partition] = append(found[r.Partition], r)
	}, kgo.SeedBrokers(d.brokers...))
	return found
}

func values(records []*kgo.Record) (all [][]byte) {
	for _, r := range records {
		all = append(all, bytes.Clone(r.Value))
	}
	return all
}
