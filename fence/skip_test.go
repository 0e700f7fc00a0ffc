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
		// the log was cut, and this one has an offset that was handled
		skip(2, Skip{TopicID: id, Offset: 5, LeaderEpoch: 99})
		got, err := Read(t.Context(), operator, topic, "orders", []int32{0, 1, 2, 3, 4}, Patience)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int32]Skip{0: {id, 10, 0, true}, 2: {id, 5, 99, false}, 3: {id, 0, 0, false}}
		if diff := cmp.Diff(want, got.Skips); diff != "" {
			t.Errorf("skips (-want +got):\n%s", diff)
		}
	})
}

// Where the log was cut, another record has the offset. An earlier version does not tell the epoch.
func TestASkipIsOfOneRecord(t *testing.T) {
	id := [16]byte{1, 2, 3}
	for _, c := range []struct {
		value string
		epoch int32
		of    bool
	}{
		{string(SkipRecord("f", "orders", 0, Skip{id, 7, 4, true}).Value), 4, true},
		{string(SkipRecord("f", "orders", 0, Skip{id, 7, 4, true}).Value), 5, false},
		{string(SkipRecord("f", "orders", 0, Skip{id, 7, 0, true}).Value), 1, false},
		{string(SkipRecord("f", "orders", 0, Skip{id, 7, -1, true}).Value), 5, true},
		{`{"topic_id":"01020300000000000000000000000000","offset":7,"action":"drop"}`, 5, true},
	} {
		skip, err := parseSkip(&kgo.Record{Value: []byte(c.value)})
		if got := skip.Of(id, 7, c.epoch); err != nil || got != c.of {
			t.Errorf("%s: %v, %v: is about a record of epoch %d", c.value, err, got, c.epoch)
		}
	}
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
