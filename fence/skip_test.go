package fence

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestTheLastSkipOfARecordThatIsNotDoneIsFound(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "fence", 5,
			map[string]string{"cleanup.policy": "compact"})
		w := &writer{t, testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic)), topic}
		operator := testkit.KafkaClient(t, brokers)
		skip := func(partition int32, s Skip) {
			t.Helper()
			if err := operator.ProduceSync(
				t.Context(), SkipRecord(topic, "orders", partition, s),
			).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		id := [16]byte{1, 2, 3}
		w.transaction(kgo.TryCommit, 10, 0, 1, 2)
		skip(0, Skip{TopicID: id, Offset: 10})
		skip(0, Skip{TopicID: id, Offset: 10, DeadLetter: true}) // the operator has another mind
		for range 20 {                                           // more than the first window holds
			w.transaction(kgo.TryAbort, 1000, 0)
		}
		skip(1, Skip{TopicID: id, Offset: 10})
		w.transaction(kgo.TryCommit, 11, 1) // it is done
		skip(3, Skip{TopicID: id, Offset: 0})
		other := SkipRecord(topic, "another input", 4, Skip{})
		if err := operator.ProduceSync(t.Context(), other).FirstErr(); err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), operator, topic, "orders", []int32{0, 1, 2, 3, 4}, Patience)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int32]Skip{0: {id, 10, true}, 3: {id, 0, false}}
		if diff := cmp.Diff(want, got.Skips); diff != "" {
			t.Errorf("skips (-want +got):\n%s", diff)
		}
	})
}

func TestASkipThatCannotBeReadIsAnError(t *testing.T) {
	for value, want := range map[string]string{
		"{":                               "skip f[2]@7: unexpected end of JSON input",
		`{"action": "drop"}`:              `skip f[2]@7: topic_id "" is not 16 bytes in hex`,
		`{"action": "park", "offset": 3}`: `skip f[2]@7: action "park" is neither drop nor dead_letter`,
	} {
		_, err := parseSkip(&kgo.Record{Topic: "f", Partition: 2, Offset: 7, Value: []byte(value)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}
