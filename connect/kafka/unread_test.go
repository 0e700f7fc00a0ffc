package kafka

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestOldUnreadRecordsAreFound(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := config.Topic{Input: testkit.Topic(t, brokers, "orders", 5, nil),
		ConsumerGroup: "group", Start: config.StartLatest}
	// ago; nothing is on partition 4
	hours := map[int32][]int{0: {9, 1}, 1: {9, 9, 1}, 2: {1}, 3: {9}}
	for partition, list := range hours {
		for _, ago := range list {
			r := &kgo.Record{Topic: topic.Input, Partition: partition,
				Timestamp: time.Now().Add(-time.Duration(ago) * time.Hour)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	offsets := make(kadm.Offsets)
	// the old one is read, one of two is, and none is old
	for partition, at := range []int64{1, 1, 0} {
		offsets.AddOffset(topic.Input, int32(partition), at, -1)
	}
	if err := kadm.NewClient(client).CommitAllOffsets(
		t.Context(), topic.ConsumerGroup, offsets,
	); err != nil {
		t.Fatal(err)
	}
	for start, want := range map[config.Start][]int32{
		config.StartLatest: {1}, config.StartEarliest: {1, 3},
	} {
		topic.Start = start
		if got, err := OldUnread(t.Context(), client, topic, 5*time.Hour); err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("start %s: got %v, %v, want %v", start, got, err, want)
		}
	}
}
