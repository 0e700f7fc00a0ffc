package fence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A start stands for the fence where there is none, whatever was written first. The lower one of
// two counts, and that of the topic as it is now.
func TestAStartStandsWhereThereIsNoFence(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "fence", 5,
			map[string]string{"cleanup.policy": "compact"})
		input := testkit.Topic(t, brokers, "orders", 5, nil)
		client := testkit.KafkaClient(t, brokers)
		found, err := Read(t.Context(), client, topic, input, nil, Patience)
		if err != nil {
			t.Fatal(err)
		}
		now, old := found.Input, [16]byte{9}
		start := func(p int32, id [16]byte, at int64) *kgo.Record {
			return StartRecord(topic, input, p, StartAt(id, at, -1, "group"))
		}
		handled := func(p int32, id [16]byte, next int64) *kgo.Record {
			return Record(topic, input, p, Fence{}.Advance(Span{TopicID: id, Next: next}))
		}
		if err := client.ProduceSync(t.Context(),
			start(0, now, 7), start(0, now, 5), start(0, now, 6),
			handled(1, now, 9), start(1, now, 12), // of a process that stood still
			start(2, now, 0),
			start(3, old, 3), start(3, now, 8), start(3, old, 4),
			handled(4, old, 9), start(4, now, 2),
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if found, err = Read(t.Context(), client, topic, input, []int32{0, 1, 2, 3, 4},
			Patience); err != nil {
			t.Fatal(err)
		}
		got := make(map[int32]int64)
		for p := range int32(5) {
			begin, decided := found.Begin(p)
			if !decided {
				t.Errorf("nothing is decided about partition %d", p)
			}
			got[p] = begin.Next()
			if _, some := found.Fences[p]; some != (p == 1 || p == 4) {
				t.Errorf("partition %d: a start is no fence", p)
			}
		}
		if diff := cmp.Diff(map[int32]int64{0: 5, 1: 9, 2: 0, 3: 8, 4: 2}, got); diff != "" {
			t.Error(diff)
		}
	})
}
