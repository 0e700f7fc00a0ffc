package offsets_test

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/offsets"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/internal/testkit"
)

// cleanOf makes a clean topic of one partition whose records have these sources on the input.
func cleanOf(t *testing.T, sources []int64) *cleanTopic {
	t.Helper()
	_, brokers := testkit.FakeKafka(t)
	name := testkit.Topic(t, brokers, "clean", 1, nil)
	client := testkit.KafkaClient(t, brokers)
	c := &cleanTopic{records: make(map[int32][]*kgo.Record)}
	for _, source := range sources {
		c.inputEnd = max(c.inputEnd, source+1)
		value := binary.BigEndian.AppendUint64([]byte{itself}, uint64(source))
		c.records[0] = append(c.records[0], &kgo.Record{Topic: name, Value: value})
	}
	if err := client.ProduceSync(t.Context(), c.records[0]...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c.options = offsets.Options{Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)}, Judge: owners{},
		Input: logreader.Log{Topic: "orders", TopicID: inputID,
			Partitions: map[int32]logreader.Range{0: {End: c.inputEnd}}}}
	var err error
	if c.options.Clean, err = logreader.Describe(t.Context(), client, name,
		logreader.Bounds{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Letters of records that no topic took, redriven into the clean topic, stand there late and own
// their IDs by early offsets.
func TestRedrivenLettersDoNotMisleadAConsumer(t *testing.T) {
	var sources []int64
	for source := range int64(900) {
		if source < 40 || source >= 140 { // those were refused, and redriven later
			sources = append(sources, source)
		}
	}
	for source := int64(40); source < 140; source++ {
		sources = append(sources, source)
	}
	c := cleanOf(t, sources)
	places, err := offsets.Clean(t.Context(), c.options, map[int32]int64{0: 880})
	if err != nil {
		t.Fatal(err)
	}
	c.checkClean(t, 0, 880, places[0])
}

// An ID that came again with the same content after its ttl is owned by the later record. A
// consumer that stands behind the first one does not go on behind the second.
func TestAnIDThatCameAgainDoesNotLeadBackTooFar(t *testing.T) {
	var sources []int64
	for source := range int64(1000) {
		sources = append(sources, source)
	}
	sources[99] = 999 // offsets 99 and 999 have one ID and content; its claim is that of 999 now
	c := cleanOf(t, sources)
	places, err := offsets.Input(t.Context(), c.options, map[int32]int64{0: 100})
	if err != nil {
		t.Fatal(err)
	}
	if places[0].Offset > 100 {
		t.Errorf("the consumer has read 100 records, and goes on at %d of the input: it never gets "+
			"%d records", places[0].Offset, places[0].Offset-100)
	}
}

// By the same claim, the place lies before records that the consumer has had: far before the others
// that it has not had, or right before them.
func TestIDsThatCameAgainAreCounted(t *testing.T) {
	for _, first := range []int{500, 660} {
		var sources []int64
		for source := range int64(1000) {
			sources = append(sources, source)
		}
		for i := first; i < first+40; i++ {
			sources[i] = int64(960 + i - first) // 40 IDs that came again after their ttl
		}
		c := cleanOf(t, sources)
		places, err := offsets.Clean(t.Context(), c.options, map[int32]int64{0: 700})
		if err != nil {
			t.Fatal(err)
		}
		if again := max(0, 700-places[0].Offset); again > places[0].Again {
			t.Errorf("goes on at %d: %d records come again, and %d are told", places[0].Offset,
				again, places[0].Again)
		}
	}
}
