package command

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/idorder"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/lab/workload"
)

// sampled makes IDs that came one a second.
func sampled(n int, id func(i int) string) []idorder.Sampled {
	var sample []idorder.Sampled
	for i := range n {
		sample = append(sample, idorder.Sampled{ID: id(i), At: int64(i) * 1000})
	}
	return sample
}

func TestTheOrderOfIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	inTime := workload.Spec{IDBytes: workload.UUIDBytes, Ordered: true}
	atRandom := workload.Spec{IDBytes: workload.UUIDBytes}
	for _, c := range []struct {
		name   string
		sample []idorder.Sampled
		want   string
	}{
		{"UUIDv7", sampled(500, inTime.ID), orderTime},
		{"UUIDv7 of producers that lag", sampled(500, func(i int) string {
			return inTime.ID(i*10 + random.IntN(50))
		}), orderTime},
		{"UUIDv4", sampled(500, atRandom.ID), orderRandom},
		{"a counter with leading zeros", sampled(500, func(i int) string {
			return fmt.Sprintf("%09d", i)
		}), orderTime},
		{"a counter that grew longer", sampled(500, func(i int) string { return fmt.Sprint(i) }),
			orderRandom},
		{"the name of one of many producers in front", sampled(500, func(i int) string {
			return fmt.Sprint(i%7) + inTime.ID(i)
		}), orderRandom},
		{"backwards", sampled(500, func(i int) string { return fmt.Sprintf("%09d", 999-i) }),
			orderRandom},
		{"too few", sampled(99, inTime.ID), orderUnknown},
		{"one ID only", sampled(500, func(int) string { return "a" }), orderUnknown},
	} {
		if got := orderOf(c.sample); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTheInputTellsItsRateAndItsIDs(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := config.Config{Kafka: config.Kafka{Brokers: brokers}}
	for order, want := range map[bool]string{true: orderTime, false: orderRandom} {
		topic := config.Topic{Input: testkit.Topic(t, brokers, "orders", 2, nil),
			MessageID: config.MessageID{From: config.FromKey}}
		spec := workload.Spec{IDBytes: workload.UUIDBytes, Ordered: order}
		const seconds = 2000 // up to now
		start := time.Now().Add(-seconds * time.Second)
		var records []*kgo.Record
		for i := range 2 * seconds {
			records = append(records, &kgo.Record{
				Topic: topic.Input, Partition: int32(i % 2), Key: []byte(spec.ID(i * 10)),
				Timestamp: start.Add(time.Duration(i) * time.Second / 2),
			})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		got, err := inspectInput(t.Context(), c, topic, slog.New(slog.DiscardHandler))
		if err != nil || got.order != want || got.idBytes != workload.UUIDBytes || got.rate < 1.5 ||
			got.rate > 2.1 {
			t.Errorf("got %+v, %v, want %s", got, err, want)
		}
	}
	missing := config.Topic{Input: "none", MessageID: config.MessageID{From: config.FromKey}}
	if _, err := inspectInput(t.Context(), c, missing, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "none") {
		t.Errorf("a missing topic: %v", err)
	}
}

func TestTheAdviceFollowsFromRateAndTTL(t *testing.T) {
	// Claims stay on the disk for three hours more: 40,000 s in all.
	a := advice{rows: true,
		topic: config.Topic{TTL: 29_200 * time.Second, Buckets: 4}, idBytes: 65, rate: 1 << 20}
	got := make(map[string]any)
	notes := make(map[string]string)
	for _, r := range a.results() {
		got[r.Name], notes[r.Name] = r.Value, r.Note
	}
	for name, want := range map[string]float64{
		"claims kept": 29_200 << 20, "claims per bucket": 7_300 << 20, "bucket MiB": 1_000_000,
		"disk GiB": 4_000_000. / 1024,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	// 4,000,000 MiB in buckets of at most 100 need 40,000 of them.
	if want := "take buckets: 65536"; !strings.Contains(notes["bucket MiB"], want) {
		t.Errorf("%q is missing in %q", want, notes["bucket MiB"])
	}
	a.topic.Buckets = 65536
	if note := a.bucketNote(); strings.Contains(note, "take") {
		t.Errorf("enough buckets, and yet %q", note)
	}
	a.rows = false
	if results := a.results(); len(results) != 2 {
		t.Errorf("advice about buckets where there are none: %v", results)
	}
}
