package client

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/testkit"
)

// askingFor is a client that asks brokers about an input, and is in no group.
func askingFor(t *testing.T, brokers []string, topic string) *Client {
	t.Helper()
	asking := testkit.KafkaClient(t, brokers)
	return &Client{kafka: asking, input: asking, admin: kadm.NewClient(asking),
		logs: kadm.NewClient(asking), opts: Options{Options: consumer.Options{Input: topic}}}
}

func TestALeaderTellsWhereAnEpochHasEnded(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "orders", 2, nil)
		producer := testkit.KafkaClient(t, brokers, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for range 5 {
			if err := producer.ProduceSync(
				t.Context(), &kgo.Record{Topic: topic, Partition: 1},
			).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := askingFor(t, brokers, topic).EpochEnds(t.Context(),
			map[int32]int32{0: 0, 1: 0})
		if diff := cmp.Diff(map[int32]int64{0: 0, 1: 5}, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func TestAnEpochThatNoLeaderKnowsHasNoEnd(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "orders", 1, nil)
		got, err := askingFor(t, brokers, topic).EpochEnds(t.Context(), map[int32]int32{0: 99})
		if err != nil || len(got) > 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestBrokersThatDoNotTellEpochsStopNothing(t *testing.T) {
	hiding := kversion.Stable()
	hiding.SetMaxKeyVersion(int16(kmsg.OffsetForLeaderEpoch), -1)
	_, brokers := testkit.FakeKafka(t, kfake.MaxVersions(hiding))
	topic := testkit.Topic(t, brokers, "orders", 1, nil)
	got, err := askingFor(t, brokers, topic).EpochEnds(t.Context(), map[int32]int32{0: 0})
	if err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}
