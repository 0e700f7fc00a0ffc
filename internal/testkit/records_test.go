package testkit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func transactional(t *testing.T, brokers []string, id string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// write produces the values to a partition in one transaction, which it leaves open.
func write(t *testing.T, client *kgo.Client, topic string, partition int32, values ...string) {
	t.Helper()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, value := range values {
		r := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func end(t *testing.T, client *kgo.Client, how kgo.TransactionEndTry) {
	t.Helper()
	if err := client.EndTransaction(t.Context(), how); err != nil {
		t.Fatal(err)
	}
}

func TestReadCommittedShowsWhatIsCommittedInTheOrderOfEachPartition(t *testing.T) {
	_, brokers := FakeKafka(t)
	topic := Topic(t, brokers, "orders", 4, nil) // of which the last one stays empty
	one, other := transactional(t, brokers, "one"), transactional(t, brokers, "other")
	write(t, one, topic, 0, "a", "b")
	end(t, one, kgo.TryCommit)
	write(t, one, topic, 1, "c")
	end(t, one, kgo.TryCommit)
	write(t, one, topic, 0, "aborted")
	end(t, one, kgo.TryAbort)
	write(t, one, topic, 2, "d")
	end(t, one, kgo.TryCommit)
	write(t, other, topic, 2, "open")
	write(t, one, topic, 2, "behind the open one")
	end(t, one, kgo.TryCommit)

	got := make(map[int32][]string)
	ReadCommitted(t, topic, func(r *kgo.Record) {
		got[r.Partition] = append(got[r.Partition], string(r.Value))
	}, kgo.SeedBrokers(brokers...))
	if diff := cmp.Diff(map[int32][]string{0: {"a", "b"}, 1: {"c"}, 2: {"d"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	end(t, other, kgo.TryAbort)
}

func TestReadCommittedFailsTheTestWhereThereIsNoTopic(t *testing.T) {
	_, brokers := FakeKafka(t)
	got := record(t, func(t testing.TB) {
		ReadCommitted(t, "none", func(*kgo.Record) {}, kgo.SeedBrokers(brokers...))
	})
	if !got.Failed {
		t.Error("a topic that does not exist was read")
	}
}

func TestTheDigestTellsRecordsApartByAllThatAConsumerSees(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	like := func(change func(*kgo.Record)) *kgo.Record {
		r := &kgo.Record{
			Key: []byte("key"), Value: []byte("value"), Timestamp: at,
			Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}},
		}
		change(r)
		return r
	}
	seen := make(map[[32]byte]string)
	for name, r := range map[string]*kgo.Record{
		"the original":  like(func(*kgo.Record) {}),
		"another key":   like(func(r *kgo.Record) { r.Key = []byte("kez") }),
		"no key":        like(func(r *kgo.Record) { r.Key = nil }),
		"an empty key":  like(func(r *kgo.Record) { r.Key = []byte{} }),
		"another value": like(func(r *kgo.Record) { r.Value = []byte("valuf") }),
		"bytes moved to the key": like(func(r *kgo.Record) {
			r.Key, r.Value = []byte("keyv"), []byte("alue")
		}),
		"headers in another turn": like(func(r *kgo.Record) {
			r.Headers[0], r.Headers[1] = r.Headers[1], r.Headers[0]
		}),
		"a header less":          like(func(r *kgo.Record) { r.Headers = r.Headers[:1] }),
		"a header's empty value": like(func(r *kgo.Record) { r.Headers[1].Value = []byte{} }),
		"another time": like(func(r *kgo.Record) {
			r.Timestamp = at.Add(time.Millisecond)
		}),
	} {
		digest := Digest(r)
		if other, ok := seen[digest]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[digest] = name
	}
	moved := like(func(r *kgo.Record) { r.Topic, r.Partition, r.Offset = "clean", 3, 7 })
	if seen[Digest(moved)] != "the original" {
		t.Error("the place of a record changes its digest")
	}
}
