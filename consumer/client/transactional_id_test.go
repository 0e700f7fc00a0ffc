package client

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/testkit"
)

// words are all texts of some letters up to a length.
func words(letters string, longest int) []string {
	all := []string{""}
	for from := 0; longest > 0; longest-- {
		for _, word := range all[from:] {
			for _, letter := range letters {
				all = append(all, word+string(letter))
			}
			from++
		}
	}
	return all[1:]
}

func TestNoTwoLanesShareATransactionalID(t *testing.T) {
	taken := make(map[string][2]string)
	for _, group := range words("a-0@", 4) {
		for _, instance := range words("a-0", 3) {
			for _, lane := range []int{0, 10} {
				name := TransactionalID(group, instance, lane)
				if other, found := taken[name]; found {
					t.Fatalf("group and instance %q and %q share %q", other,
						[2]string{group, instance}, name)
				}
				taken[name] = [2]string{group, instance}
				if !isOfGroup(name, group) ||
					!isOfGroup(EarlierTransactionalID(group, instance, lane), group) {
					t.Fatalf("%q is not taken for a lane of %q", name, group)
				}
			}
		}
	}
}

func TestTransactionalIDsOfOthersAreNotTakenForLanes(t *testing.T) {
	for _, name := range []string{
		TransactionalID("orders-dedup", "one", 0), TransactionalID("order", "s-one", 0), "orders",
		"orders-", "orders-0",
		"orders-0@", "orders-x@one", "orders-0@one@two", "orders-one-x", "orders-one-0-",
		"orders-one--1x",
	} {
		if isOfGroup(name, "orders") {
			t.Errorf("%q is taken for a lane of orders", name)
		}
	}
}

// The names of their lanes were equal before, and each join fenced the other.
func TestLanesWhoseNamesRunTogetherDoNotFenceEachOther(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	prefix := testkit.Topic(t, brokers, "group", 1, nil)
	var sessions []*consumer.Transactional
	for _, lane := range []struct{ group, instance string }{{prefix + "-b", "c"}, {prefix, "b-c"}} {
		opts := laneOf(t, brokers, lane.group, testkit.Topic(t, brokers, "fence", 1, nil))
		opts.TransactionalID = TransactionalID(lane.group, lane.instance, 0)
		opts.EarlierTransactionalID = EarlierTransactionalID(lane.group, lane.instance, 0)
		sessions = append(sessions, join(t, opts))
	}
	for _, session := range sessions {
		handle(t, session)
	}
}

// laneOf is a member with an input of its own, on which one record lies.
func laneOf(t *testing.T, brokers []string, group, fences string) Options {
	t.Helper()
	opts := *optionsOf(t, brokers, fences, "")
	opts.Input, opts.ConsumerGroup = testkit.Topic(t, brokers, "orders", 1, nil), group
	opts.Limit, opts.TransactionTimeout = consumer.NewBatchLimit(100, 1<<20, 15*time.Second, nil),
		15*time.Second
	opts.FetchBytes, opts.UnpackedBytes, opts.SessionTimeout = 1<<20, 1<<20, 10*time.Second
	opts.Producer = []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())}
	opts.Metrics = consumer.NewCollectors(prometheus.NewRegistry()).For(opts.Input)
	record := &kgo.Record{Topic: opts.Input, Value: []byte("one")}
	if err := testkit.KafkaClient(t, brokers).ProduceSync(
		t.Context(), record,
	).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return opts
}

func join(t *testing.T, opts Options) *consumer.Transactional {
	t.Helper()
	session, err := JoinTransactional(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func handle(t *testing.T, session *consumer.Transactional) {
	t.Helper()
	batch, err := session.Poll(t.Context())
	if err == nil {
		err = session.Begin(t.Context(), batch)
	}
	if err == nil {
		err = session.Commit(t.Context(), batch)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAnUpgradeEndsWhatWasLeftOpenUnderTheEarlierName(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		a := abandon(t, brokers)
		opts := laneOf(t, brokers, a.topic+"-group", a.topic)
		opts.TransactionalID = TransactionalID(opts.ConsumerGroup, "one", 0)
		opts.EarlierTransactionalID = a.options.TransactionalID
		session := join(t, opts)
		described, err := kadm.NewClient(testkit.KafkaClient(t, brokers)).DescribeTransactions(
			t.Context(), opts.EarlierTransactionalID)
		if err != nil || described[opts.EarlierTransactionalID].State == "Ongoing" {
			t.Errorf("the transaction is still open: %+v, %v", described, err)
		}
		if err := a.client.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
			t.Error("the predecessor could commit")
		}
		handle(t, session)
	})
}
