package fence

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer writes fences as the lanes do.
type writer struct {
	t      *testing.T
	client *kgo.Client
	topic  string
}

func upTo(next int64) Fence {
	return Fence{}.Advance(Span{Next: next, LeaderEpoch: 1})
}

// transaction writes a fence to each of the partitions and ends as told.
func (w *writer) transaction(end kgo.TransactionEndTry, next int64, partitions ...int32) {
	w.t.Helper()
	if err := w.client.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	var records []*kgo.Record
	for _, p := range partitions {
		records = append(records, Record(w.topic, "orders", p, upTo(next)))
	}
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.EndTransaction(w.t.Context(), end); err != nil {
		w.t.Fatal(err)
	}
}

func TestTheLastCommittedFenceIsFound(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "fence", 6,
			map[string]string{"cleanup.policy": "compact"})
		w := &writer{t, testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic)), topic}
		w.transaction(kgo.TryCommit, 10, 0, 1, 2, 3)
		for i := range int64(5) {
			w.transaction(kgo.TryCommit, 20+i, 1)
		}
		for i := range int64(40) { // more than the first window holds
			w.transaction(kgo.TryAbort, 1000+i, 2, 5)
		}
		foreign := Record(topic, "another input", 3, upTo(999))
		if err := testkit.KafkaClient(t, brokers).ProduceSync(
			t.Context(), foreign,
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), testkit.KafkaClient(t, brokers), topic, "orders",
			[]int32{0, 1, 2, 3, 4, 5}, Patience)
		if err != nil {
			t.Fatal(err)
		}
		next := make(map[int32]int64)
		for p, fence := range got.Fences {
			next[p] = fence.Next()
		}
		// 4 never had a fence, 5 only aborted ones.
		if diff := cmp.Diff(map[int32]int64{0: 10, 1: 24, 2: 10, 3: 10}, next); diff != "" {
			t.Error(diff)
		}
	})
}

// A topic that is not compacted keeps all fences until somebody shortens it.
func TestTheLastFenceIsFoundOnATopicThatWasShortened(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "fence", 2, map[string]string{"cleanup.policy": "delete",
			"retention.ms": "-1", "retention.bytes": "-1"})
		client := testkit.KafkaClient(t, brokers)
		cut := make(kadm.Offsets)
		for p := range int32(2) {
			for next := range int64(300) {
				if err := client.ProduceSync(t.Context(),
					Record(topic, "orders", p, upTo(next+1))).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			cut.Add(kadm.Offset{Topic: topic, Partition: p, At: 299})
		}
		if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), client, topic, "orders", []int32{0, 1}, Patience)
		if err != nil || got.Fences[0].Next() != 300 || got.Fences[1].Next() != 300 {
			t.Errorf("found %+v, %v", got.Fences, err)
		}
	})
}

// The offsets that belong to a fence may be visible before it. If they were set back meanwhile,
// what lies between would be forwarded again.
func TestAnOpenTransactionIsWaitedFor(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "fence", 1, nil)
		w := &writer{t, testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic)), topic}
		w.transaction(kgo.TryCommit, 10, 0)
		for next, end := range map[int64]kgo.TransactionEndTry{10: kgo.TryAbort,
			20: kgo.TryCommit} {
			if err := w.client.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := w.client.ProduceSync(
				t.Context(), Record(topic, "orders", 0, upTo(20)),
			).FirstErr(); err != nil {
				t.Fatal(err)
			}
			late := testkit.KafkaClient(t, brokers)
			impatient := &reader{client: late, topic: topic, input: "orders", patience: time.Second}
			if err := impatient.read(t.Context(), []int32{0}); !errors.Is(err, ErrHanging) {
				t.Errorf("with an open transaction: %+v, %v", impatient.found, err)
			}
			found := make(chan int64)
			go func() {
				got, err := Read(t.Context(), late, topic, "orders", []int32{0}, Patience)
				if err != nil {
					t.Error(err)
				}
				found <- got.Fences[0].Next()
			}()
			if err := w.client.EndTransaction(t.Context(), end); err != nil {
				t.Fatal(err)
			}
			if got := <-found; got != next && end == kgo.TryCommit {
				t.Errorf("got %d, want %d", got, next)
			}
		}
	})
}

// With at_least_once a member that lost the partition may write after its next owner.
func TestAnOlderFenceBehindANewerOneIsNotBelieved(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "fence", 1, nil)
		client := testkit.KafkaClient(t, brokers)
		for _, next := range []int64{10, 50, 30} {
			if err := client.ProduceSync(
				t.Context(), Record(topic, "orders", 0, upTo(next)),
			).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Read(t.Context(), client, topic, "orders", []int32{0}, Patience)
		if err != nil || got.Fences[0].Next() != 50 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestAFenceIsFoundThoughAllBehindItWasCompactedAway(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t, kfake.NumBrokers(1))
	topic := testkit.Topic(t, brokers, "fence", 1, map[string]string{"cleanup.policy": "compact"})
	client := testkit.KafkaClient(t, brokers)
	records := []*kgo.Record{Record(topic, "orders", 0, upTo(10))}
	for range 100 {
		records = append(records, Record(topic, "another input", 0, upTo(999)))
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request := r.(*kmsg.FetchRequest)
		if request.Topics[0].Partitions[0].FetchOffset == 0 {
			return nil, nil, false
		}
		answer := request.ResponseKind().(*kmsg.FetchResponse)
		of := kmsg.NewFetchResponseTopic()
		of.Topic, of.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
		partition := kmsg.NewFetchResponseTopicPartition()
		partition.HighWatermark, partition.LastStableOffset = 101, 101
		of.Partitions = append(of.Partitions, partition)
		answer.Topics = append(answer.Topics, of)
		return answer, nil, true
	})
	got, err := Read(t.Context(), client, topic, "orders", []int32{0}, 10*time.Second)
	if err != nil || got.Fences[0].Next() != 10 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAMissingFenceTopicNamesTheRemedy(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		client := testkit.KafkaClient(t, brokers)
		topic := testkit.Topic(t, brokers, "fence", 2, nil)
		_, err := Read(t.Context(), client, topic+"-none", "orders", []int32{1, 2}, Patience)
		if want := "create it with: kdedup setup -c FILE"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

// The input was widened, and the fence topic was not yet.
func TestAPartitionWithoutACounterpartHasNoFence(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		client := testkit.KafkaClient(t, brokers)
		topic := testkit.Topic(t, brokers, "fence", 2, nil)
		if err := client.ProduceSync(t.Context(),
			Record(topic, "orders", 1, upTo(7))).FirstErr(); err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), client, topic, "orders", []int32{1, 2}, Patience)
		if err != nil || len(got.Fences) != 1 || got.Fences[1].Next() != 7 {
			t.Errorf("got %+v, %v", got.Fences, err)
		}
	})
}

func BenchmarkReadFences(b *testing.B) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1000, "fence"))
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	var partitions []int32
	for p := range int32(1000) {
		partitions = append(partitions, p)
		for next := range int64(5) {
			client.Produce(b.Context(), Record("fence", "orders", p, upTo(next)), nil)
		}
	}
	if err := client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		got, err := Read(b.Context(), client, "fence", "orders", partitions, Patience)
		if err != nil || len(got.Fences) != len(partitions) {
			b.Fatal(fmt.Sprint(len(got.Fences)), err)
		}
	}
}
