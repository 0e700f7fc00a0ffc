package logreader

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Now().Add(-24 * time.Hour).Truncate(time.Second)

// produce writes records of one partition, a minute apart.
func produce(t *testing.T, client *kgo.Client, topic string, partition int32, first, n int) {
	t.Helper()
	var records []*kgo.Record
	for i := range n {
		at := begin.Add(time.Duration(first+i) * time.Minute)
		records = append(records, &kgo.Record{Topic: topic, Partition: partition,
			Value: fmt.Appendf(nil, "%d/%d", partition, first+i), Timestamp: at})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func transaction(
	t *testing.T, client *kgo.Client, topic string, end kgo.TransactionEndTry, first, n int,
) {
	t.Helper()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, client, topic, 0, first, n)
	if err := client.EndTransaction(t.Context(), end); err != nil {
		t.Fatal(err)
	}
}

// read returns the values by partition.
func read(t *testing.T, brokers []string, topic string, b Bounds) map[int32][]string {
	t.Helper()
	log, err := Describe(t.Context(), testkit.KafkaClient(t, brokers), topic, b)
	if err != nil {
		t.Fatal(err)
	}
	return readLog(t, brokers, log)
}

func readLog(t *testing.T, brokers []string, log Log) map[int32][]string {
	t.Helper()
	found := make(map[int32][]string)
	err := Read(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, log,
		func(records []*kgo.Record) error {
			for _, r := range records {
				found[r.Partition] = append(found[r.Partition], string(r.Value))
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func values(partition int32, first, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%d/%d", partition, first+i))
	}
	return all
}

func TestBoundsChooseAPartOfTheTopic(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "bounds", 3, nil)
		client := testkit.KafkaClient(t, brokers)
		produce(t, client, topic, 0, 0, 30)
		produce(t, client, topic, 1, 0, 60) // partition 2 stays empty
		at := func(minute int) time.Time { return begin.Add(time.Duration(minute) * time.Minute) }
		for name, c := range map[string]struct {
			bounds Bounds
			want   map[int32][]string
		}{
			"all": {Bounds{},
				map[int32][]string{0: values(0, 0, 30), 1: values(1, 0, 60)}},
			"from": {Bounds{From: at(20)},
				map[int32][]string{0: values(0, 20, 10), 1: values(1, 20, 40)}},
			"to": {Bounds{To: at(20)},
				map[int32][]string{0: values(0, 0, 20), 1: values(1, 0, 20)}},
			"between": {Bounds{From: at(10), To: at(50)},
				map[int32][]string{0: values(0, 10, 20), 1: values(1, 10, 40)}},
			"behind the end": {Bounds{From: at(1000)}, map[int32][]string{}},
			"newest": {Bounds{MaxRecords: 9},
				map[int32][]string{0: values(0, 27, 3), 1: values(1, 54, 6)}},
			"newest of more": {Bounds{MaxRecords: 900},
				map[int32][]string{0: values(0, 0, 30), 1: values(1, 0, 60)}},
			"newest before": {Bounds{MaxRecords: 10, To: at(30)},
				map[int32][]string{0: values(0, 25, 5), 1: values(1, 25, 5)}},
		} {
			if diff := cmp.Diff(c.want, read(t, brokers, topic, c.bounds)); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		}
	})
}

// A hundred of a thousand partitions with ten records each are a tenth of a record for each.
func TestTheNewestOfManyPartitionsAreAsManyAsWereAskedFor(t *testing.T) {
	for range 200 {
		log, n := Log{Partitions: make(map[int32]Range)}, 1+rand.Int64N(200)
		for p := range 1 + rand.Int32N(1000) {
			start := rand.Int64N(50)
			log.Partitions[p] = Range{start, start + rand.Int64N(30)}
		}
		before, all := maps.Clone(log.Partitions), log.Offsets()
		log.newest(n)
		if got, want := log.Offsets(), min(n, all); got != want {
			t.Fatalf("%d offsets of %d, want %d", got, all, want)
		}
		for p, r := range log.Partitions {
			if r.Start < before[p].Start || r.End != before[p].End {
				t.Fatalf("partition %d: %v of %v", p, r, before[p])
			}
		}
	}
}

func TestWhatComesLaterAndWhatIsNotCommittedIsLeftOut(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "committed", 1, nil)
		plain, tx := testkit.KafkaClient(t, brokers),
			testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic))
		produce(t, plain, topic, 0, 0, 5)
		transaction(t, tx, topic, kgo.TryAbort, 100, 5)
		transaction(t, tx, topic, kgo.TryCommit, 5, 5)
		transaction(t, tx, topic, kgo.TryAbort, 200, 5)
		log, err := Describe(t.Context(), plain, topic, Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		produce(t, plain, topic, 0, 300, 5)
		if diff := cmp.Diff(values(0, 0, 10), readLog(t, brokers, log)[0]); diff != "" {
			t.Error(diff)
		}
	})
}

// The range may end with records of an aborted transaction whose marker lies behind another one
// that is still open: no poll ever tells that there is nothing more to come.
func TestAnEndThatCannotBeSeenIsReached(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "unseen", 1, nil)
		one, other := testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic+"-1")),
			testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic+"-2"))
		produce(t, testkit.KafkaClient(t, brokers), topic, 0, 0, 3)
		if err := errors.Join(one.BeginTransaction(), other.BeginTransaction()); err != nil {
			t.Fatal(err)
		}
		produce(t, one, topic, 0, 100, 3)
		produce(t, other, topic, 0, 200, 3)
		if err := one.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		var log Log
		testkit.Eventually(t, 10*time.Second, "the marker of the aborted transaction", func() bool {
			var err error
			if log, err = Describe(t.Context(), other, topic, Bounds{}); err != nil {
				t.Fatal(err)
			}
			return log.Partitions[0] == Range{0, 6}
		})
		if diff := cmp.Diff(values(0, 0, 3), readLog(t, brokers, log)[0]); diff != "" {
			t.Error(diff)
		}
		if err := other.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
	})
}

func TestATopicThatIsReplacedMeanwhileIsNotMixed(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "replaced", 1, nil)
	client := testkit.KafkaClient(t, brokers)
	admin := kadm.NewClient(client)
	produce(t, client, topic, 0, 0, 5)
	log, err := Describe(t.Context(), client, topic, Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	again := testkit.KafkaClient(t, brokers)
	produce(t, again, topic, 0, 500, 5)
	err = Read(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, log, func([]*kgo.Record) error {
		return nil
	})
	if !errors.Is(err, ErrCut) {
		t.Errorf("got %v", err)
	}
}

func TestATopicThatIsNotThereIsSaidSo(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	if _, err := Describe(
		t.Context(), testkit.KafkaClient(t, brokers), "none", Bounds{},
	); err == nil || err.Error() != "topic none does not exist" {
		t.Errorf("got %v", err)
	}
}

func TestReadingEndsWithTheFirstError(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "failing", 1, nil)
	client := testkit.KafkaClient(t, brokers)
	produce(t, client, topic, 0, 0, 5)
	log, err := Describe(t.Context(), client, topic, Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("enough")
	err = Read(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, log, func([]*kgo.Record) error {
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestAllThatALogHasIsReadIfAsked(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "all", 1, nil)
		client := testkit.KafkaClient(t, brokers, kgo.TransactionalID(topic))
		transaction(t, client, topic, kgo.TryAbort, 0, 10)
		transaction(t, client, topic, kgo.TryCommit, 10, 10)
		log, err := Describe(t.Context(), client, topic, Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		var next int64
		err = ReadAll(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, log,
			func(records []*kgo.Record) error {
				for _, r := range records {
					if r.Offset != next {
						t.Errorf("offset %d comes after %d", r.Offset, next-1)
					}
					next++
				}
				return nil
			})
		if err != nil || next != 22 {
			t.Errorf("%d offsets were read, not 20 records and 2 markers: %v", next, err)
		}
	})
}
