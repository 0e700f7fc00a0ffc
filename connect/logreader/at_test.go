package logreader

import (
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A topic has records alone in their batches, batches of many, aborted ones, and a beginning that
// was deleted. Whatever places are asked for, what a consumer can see comes, and nothing else.
func TestSingleRecordsAreReadWhereverTheyStand(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "at", 2, nil)
		other := testkit.Topic(t, brokers, "at-other", 1, nil)
		client := testkit.KafkaClient(t, brokers)
		writer := testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for i := range 10 {
			produce(t, client, topic, 0, i, 1)
		}
		produce(t, client, topic, 1, 0, 100)
		produce(t, client, other, 0, 0, 5)
		transaction(t, writer, topic, kgo.TryAbort, 100, 20)
		transaction(t, writer, topic, kgo.TryCommit, 200, 20)
		admin := kadm.NewClient(client)
		cut := kadm.Offsets{}
		cut.AddOffset(topic, 1, 30, -1)
		if _, err := admin.DeleteRecords(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
		want, gone := make(map[Place]string), 0
		ids := make(map[string][16]byte)
		for _, name := range []string{topic, other} {
			log, err := Describe(t.Context(), client, name, Bounds{})
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = log.TopicID
			err = Read(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, log,
				func(records []*kgo.Record) error {
					for _, r := range records {
						want[Place{log.TopicID, r.Partition, r.Offset}] = string(r.Value)
					}
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		random := rand.New(rand.NewPCG(3, 4))
		for range 50 {
			var places []Place
			for range 1 + random.IntN(20) {
				p := Place{ids[topic], random.Int32N(3), random.Int64N(110)}
				switch random.IntN(8) {
				case 0:
					p = Place{ids[other], 0, random.Int64N(6)}
				case 1:
					p.TopicID[3] ^= 1 // one that is no more
				}
				places = append(places, p)
			}
			found, err := At(t.Context(), client, topic, places)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range places {
				value, is := want[p]
				if r := found[p]; (r != nil) != is || is && string(r.Value) != value {
					t.Fatalf("%+v: %v, want %q (%t)", p, r, value, is)
				}
				if !is {
					gone++
				}
			}
		}
		if gone == 0 {
			t.Error("every place had a record")
		}
	})
}

func TestSingleRecordsOfATopicWithoutAnIDAreReadByItsName(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "at", 1, nil)
	client := testkit.KafkaClient(t, brokers)
	produce(t, client, topic, 0, 0, 3)
	p := Place{Offset: 1}
	found, err := At(t.Context(), client, topic, []Place{p})
	if err != nil || found[p] == nil || string(found[p].Value) != "0/1" {
		t.Errorf("%v, %v", found, err)
	}
}
