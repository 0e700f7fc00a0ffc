package offsets_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/command/offsets"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var inputID = [16]byte{1, 2, 3}

const partitions = 4

// owners stands for the claims: a clean record's value says which record of the input it is of,
// and who owns its ID.
type owners struct{}

const (
	notKnown = iota // the claim has ended, or there was none
	itself          // the record of the input owns its ID
	conflict        // a record with other content owns it
	foreign         // a record of another topic does
)

func (owners) Judge(_ context.Context, messages []dedup.Message) ([]dedup.Judgement, error) {
	judged := make([]dedup.Judgement, len(messages))
	for i, m := range messages {
		kind, source := read(m.Record)
		j := dedup.Judgement{Verdict: dedup.VerdictDuplicate, Owner: dedup.Coordinates{
			TopicID: inputID, Partition: m.Record.Partition, Offset: source}}
		switch kind {
		case notKnown:
			j = dedup.Judgement{Verdict: dedup.VerdictFirst, Owner: m.Owner}
		case conflict:
			j.Verdict, j.Owner.Offset = dedup.VerdictConflict, source/3
		case foreign:
			j.Owner.TopicID, j.Owner.Offset = [16]byte{9}, 7
		}
		judged[i] = j
	}
	return judged, nil
}

func read(r *kgo.Record) (kind int, source int64) {
	return int(r.Value[0]), int64(binary.BigEndian.Uint64(r.Value[1:]))
}

// cleanTopic has a part of an input whose records have the offsets 0 to inputEnd.
type cleanTopic struct {
	options  offsets.Options
	records  map[int32][]*kgo.Record
	inputEnd int64
}

func newCleanTopic(t *testing.T, random *rand.Rand, kinds func(share float64) int) *cleanTopic {
	t.Helper()
	_, brokers := testkit.FakeKafka(t)
	name := testkit.Topic(t, brokers, "clean", partitions, nil)
	client := testkit.KafkaClient(t, brokers)
	c := &cleanTopic{records: make(map[int32][]*kgo.Record)}
	c.inputEnd = 1 + random.Int64N(3000)
	var records []*kgo.Record
	for p := range int32(partitions) {
		for source := int64(0); source < c.inputEnd; source++ {
			if random.IntN(3) == 0 {
				continue // dropped as a copy
			}
			kind := kinds(float64(source) / float64(c.inputEnd))
			value := binary.BigEndian.AppendUint64([]byte{byte(kind)}, uint64(source))
			records = append(records, &kgo.Record{Topic: name, Partition: p, Value: value})
		}
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		c.records[r.Partition] = append(c.records[r.Partition], r)
	}
	c.options = offsets.Options{Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)}, Judge: owners{},
		Input: logreader.Log{Topic: "orders", TopicID: inputID,
			Partitions: map[int32]logreader.Range{}}}
	var err error
	if c.options.Clean, err = logreader.Describe(t.Context(), client, name,
		logreader.Bounds{}); err != nil {
		t.Fatal(err)
	}
	for p := range int32(partitions) {
		c.options.Input.Partitions[p] = logreader.Range{End: c.inputEnd}
	}
	return c
}

// kindsOf makes clean topics of different pasts.
func kindsOf(random *rand.Rand) map[string]func(float64) int {
	some := func(kinds ...int) func(float64) int {
		return func(float64) int {
			if random.IntN(5) > 0 {
				return itself
			}
			return kinds[random.IntN(len(kinds))]
		}
	}
	return map[string]func(float64) int{
		"each ID has its own claim": func(float64) int { return itself },
		"some have none":            some(notKnown, foreign),
		"conflicts are forwarded":   some(conflict),
		"the old claims have ended": func(share float64) int {
			if share < 0.6 {
				return notKnown
			}
			return itself
		},
		"all claims have ended": func(float64) int { return notKnown },
	}
}

func TestAConsumerMissesNothingAndRepeatsWhatIsSaid(t *testing.T) {
	for seed := range uint64(testkit.Number(t, "KDEDUP_OFFSETS_SEEDS", 3)) {
		random := rand.New(rand.NewPCG(seed, 1))
		for name, kinds := range kindsOf(random) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				c := newCleanTopic(t, random, kinds)
				for range 10 {
					committed := make(map[int32]int64)
					for p := range int32(partitions) {
						committed[p] = random.Int64N(c.inputEnd + 10)
					}
					places, err := offsets.Clean(t.Context(), c.options, committed)
					if err != nil {
						t.Fatal(err)
					}
					for p, place := range places {
						c.checkClean(t, p, committed[p], place)
					}
				}
			})
		}
	}
}

// checkClean compares a place with what the clean topic is known to be made of.
func (c *cleanTopic) checkClean(t *testing.T, p int32, committed int64, place offsets.Place) {
	t.Helper()
	var again int64
	for _, r := range c.records[p] {
		_, source := read(r)
		switch had := source < committed; {
		case !had && r.Offset < place.Offset:
			t.Fatalf("partition %d, committed %d: the consumer goes on at %d, and misses the "+
				"record at %d, which is of %d", p, committed, place.Offset, r.Offset, source)
		case had && r.Offset >= place.Offset:
			again++
		}
	}
	if again > place.Again {
		t.Errorf("partition %d, committed %d: %d records come again, not %d at most", p, committed,
			again, place.Again)
	}
}

func TestWithAllClaimsThePlaceIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	c := newCleanTopic(t, random, func(float64) int { return itself })
	for _, share := range []float64{0, 0.3, 0.7, 1, 2} {
		committed := make(map[int32]int64)
		for p := range int32(partitions) {
			committed[p] = int64(share * float64(c.inputEnd))
		}
		places, err := offsets.Clean(t.Context(), c.options, committed)
		if err != nil {
			t.Fatal(err)
		}
		there := make(map[int32]int64)
		for p, place := range places {
			if place.Again != 0 {
				t.Errorf("partition %d, committed %d: %d records come again", p, committed[p],
					place.Again)
			}
			c.checkClean(t, p, committed[p], place)
			there[p] = place.Offset
		}
		back, err := offsets.Input(t.Context(), c.options, there)
		if err != nil {
			t.Fatal(err)
		}
		for p, place := range back {
			c.checkInput(t, p, there[p], place)
			if place.Again != 0 || place.Offset > committed[p] {
				t.Errorf("partition %d: %d became %d, and that %+v", p, committed[p], there[p],
					place)
			}
		}
	}
}

func TestAConsumerThatGoesBackMissesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 1))
	for name, kinds := range kindsOf(random) {
		t.Run(name, func(t *testing.T) {
			c := newCleanTopic(t, random, kinds)
			there := make(map[int32]int64)
			for p := range int32(partitions) {
				there[p] = random.Int64N(int64(len(c.records[p])) + 2)
			}
			back, err := offsets.Input(t.Context(), c.options, there)
			if err != nil {
				t.Fatal(err)
			}
			for p, place := range back {
				c.checkInput(t, p, there[p], place)
			}
		})
	}
}

func (c *cleanTopic) checkInput(t *testing.T, p int32, committed int64, place offsets.Place) {
	t.Helper()
	var again int64
	for _, r := range c.records[p] {
		switch _, source := read(r); {
		case r.Offset >= committed && source < place.Offset:
			t.Fatalf("partition %d, committed %d: the consumer goes on at %d, and misses the record "+
				"at %d, which stands at %d", p, committed, place.Offset, source, r.Offset)
		case r.Offset < committed && source >= place.Offset:
			again++
		}
	}
	if again > place.Again {
		t.Errorf("partition %d, committed %d: %d records come again, not %d at most", p, committed,
			again, place.Again)
	}
}

func TestBrokersWithoutTopicIDsAreRefused(t *testing.T) {
	c := newCleanTopic(t, rand.New(rand.NewPCG(9, 1)), func(float64) int { return itself })
	c.options.Input.TopicID = [16]byte{}
	if _, err := offsets.Clean(t.Context(), c.options, map[int32]int64{0: 1}); err == nil {
		t.Error("no error")
	}
}
