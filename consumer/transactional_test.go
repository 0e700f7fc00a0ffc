package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// booth is a session on topics of its own, and what an outsider sees of it.
type booth struct {
	*consumer.Transactional
	t        *testing.T
	outsider *kgo.Client
	admin    *kadm.Client
	input    string
	grouped  string // the topic beside which the group's offsets stand
	member   string
}

// booths runs a test with brokers of both kinds: told what belongs to a transaction, or not
// (KIP-890), and with the input on another cluster than the group, its fences and its transactions.
func booths(t *testing.T, test func(b *booth)) {
	fake := func(t *testing.T, opts ...kfake.Opt) []string {
		_, brokers := testkit.FakeKafka(t, opts...)
		return brokers
	}
	t.Run("fake", func(t *testing.T) { test(newBooth(t, fake(t))) })
	t.Run("fake, before KIP-890", func(t *testing.T) {
		test(newBooth(t, fake(t, kfake.MaxVersions(kversion.V3_8_0()))))
	})
	t.Run("real", func(t *testing.T) { test(newBooth(t, testkit.Kafka(t))) })
	t.Run("two clusters", func(t *testing.T) { test(newBoothApart(t, fake(t), fake(t))) })
	t.Run("a real one and another", func(t *testing.T) {
		test(newBoothApart(t, fake(t), testkit.Kafka(t)))
	})
}

func newBooth(t *testing.T, brokers []string) *booth { return newBoothApart(t, brokers, brokers) }

// newBoothApart has its input at other brokers than the rest, if they are others.
func newBoothApart(t *testing.T, inputs, brokers []string) *booth {
	t.Helper()
	input, fence := testkit.Topic(t, inputs, "orders", 2, nil),
		testkit.Topic(t, brokers, "fence", 2, nil)
	b := &booth{t: t, outsider: testkit.KafkaClient(t, inputs),
		admin: kadm.NewClient(testkit.KafkaClient(t, brokers)), input: input, grouped: input,
		member: input + "-group-a-0"}
	b.produce(0, "one", "two") // before there is a session that could be given the first alone
	options := memberOptions(t, inputs, input, fence, b.member)
	if !slices.Equal(inputs, brokers) {
		b.grouped = fence
		options.Forwarding = func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(brokers...)} }
	}
	session, err := client.JoinTransactional(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	b.Transactional = session
	return b
}

// memberOptions are those of a member of the input's group. It sends records to the partitions that
// they name.
func memberOptions(t testing.TB, brokers []string, input, fences, member string) client.Options {
	return client.Options{
		Options: consumer.Options{
			Input: input, ConsumerGroup: input + "-group", FenceTopic: fences,
			Limit:              consumer.NewBatchLimit(100, 1<<20, 15*time.Second, nil),
			TransactionTimeout: 15 * time.Second,
			Metrics:            consumer.NewCollectors(prometheus.NewRegistry()).For(input),
			Logger:             slog.New(slog.NewTextHandler(t.Output(), nil)),
		},
		Connection: func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(brokers...)} },
		Producer:   []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())},
		Member:     member, TransactionalID: member, FetchBytes: 1 << 20, UnpackedBytes: 1 << 20,
		SessionTimeout: 10 * time.Second,
	}
}

func (b *booth) produce(partition int32, values ...string) {
	b.t.Helper()
	for _, v := range values {
		if err := b.outsider.ProduceSync(
			b.t.Context(), &kgo.Record{Topic: b.input, Partition: partition, Value: []byte(v)},
		).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *booth) poll(want ...string) *consumer.Batch {
	b.t.Helper()
	batch, err := b.Poll(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, r := range batch.Records {
		got = append(got, string(r.Value))
	}
	if !slices.Equal(got, want) {
		b.t.Fatalf("polled %q, want %q", got, want)
	}
	return batch
}

func (b *booth) commit(batch *consumer.Batch) error {
	if err := b.Begin(b.t.Context(), batch); err != nil {
		return err
	}
	return b.Commit(b.t.Context(), batch)
}

// waitOngoing waits until the session has a transaction open at its coordinator, or none.
func (b *booth) waitOngoing(ongoing bool) {
	b.t.Helper()
	testkit.Eventually(b.t, 20*time.Second, "the transaction at its coordinator", func() bool {
		described, err := b.admin.DescribeTransactions(b.t.Context(), b.member)
		return err == nil && (described[b.member].State == "Ongoing") == ongoing
	})
}

// committed is the group's offset, -1 if it has none.
func (b *booth) committed() (int64, error) {
	offsets, err := b.admin.FetchOffsetsForTopics(kadm.RequireStable(b.t.Context()),
		b.input+"-group", b.grouped)
	if err != nil {
		return 0, err
	}
	at, _ := offsets.Lookup(b.grouped, 0)
	return at.At, at.Err
}

func (b *booth) waitCommitted(want int64) {
	b.t.Helper()
	testkit.Eventually(b.t, 20*time.Second, "the group's offset", func() bool {
		at, err := b.committed()
		return err == nil && at == want
	})
}

func TestTheOffsetsAreInTheTransactionWhileTheBatchIsClaimed(t *testing.T) {
	booths(t, func(b *booth) {
		b.SetPatience(time.Minute) // longer than a busy machine takes to look
		batch := b.poll("one", "two")
		b.waitOngoing(true)
		if err := b.commit(batch); err != nil {
			t.Fatal(err)
		}
		b.waitCommitted(2)
		b.produce(0, "three")
		if err := b.commit(b.poll("three")); err != nil {
			t.Fatal(err)
		}
		b.waitCommitted(3)
	})
}

// A store that is down must not keep a transaction open, nor the offsets from another member.
func TestATransactionDoesNotWaitForLongClaims(t *testing.T) {
	booths(t, func(b *booth) {
		b.SetPatience(time.Millisecond)
		batch := b.poll("one", "two")
		b.AwaitOpening()
		b.waitOngoing(false)
		b.waitCommitted(-1)
		if err := b.commit(batch); err != nil {
			t.Fatal(err)
		}
		b.waitCommitted(2)
	})
}

func TestABatchIsGivenBackBeforeItsForwards(t *testing.T) {
	booths(t, func(b *booth) {
		why := errors.New("the claims failed")
		b.SetPatience(time.Minute) // longer than a busy machine takes to look
		batch := b.poll("one", "two")
		b.waitOngoing(true)
		if err := b.Abort(t.Context(), batch, why); !errors.Is(err, consumer.ErrAborted) ||
			!errors.Is(err, why) {
			t.Fatal(err)
		}
		b.waitOngoing(false)
		b.waitCommitted(-1)
		if err := b.commit(b.poll("one", "two")); err != nil {
			t.Fatal(err)
		}
		b.waitCommitted(2)
	})
}

// The coordinator does not compare partitions: it would take the offsets of one that has another
// owner.
func TestABatchThatWasTakenAwayIsNotCommitted(t *testing.T) {
	booths(t, func(b *booth) {
		batch := b.poll("one", "two")
		if err := b.Begin(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		b.Revoke(0)
		if err := b.Commit(t.Context(), batch); !errors.Is(err, consumer.ErrAborted) ||
			!errors.Is(err, consumer.ErrRevoked) {
			t.Fatal(err)
		}
		b.waitOngoing(false)
		b.waitCommitted(-1)
	})
}

// The next owner of a partition begins behind a transaction that is not decided, or before it, and
// cannot know which: so it waits for the end.
func TestOffsetsThatAnOpenTransactionHasAreNotTold(t *testing.T) {
	booths(t, func(b *booth) {
		b.SetPatience(time.Minute)
		batch := b.poll("one", "two")
		if err := b.Begin(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if at, err := b.GroupOffsets(t.Context()); !errors.Is(err, kerr.UnstableOffsetCommit) {
			t.Errorf("the offsets are %v, %v", at, err)
		}
		if err := b.Commit(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 20*time.Second, "the offsets", func() bool {
			at, err := b.GroupOffsets(t.Context())
			return err == nil && at[0].Offset == 2
		})
	})
}

func TestABatchWhoseOffsetsAreRefusedIsGivenBack(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.IllegalGeneration, kerr.RebalanceInProgress,
		kerr.UnknownServerError} {
		t.Run(refusal.Message, func(t *testing.T) {
			cluster, brokers := testkit.FakeKafka(t)
			b := newBooth(t, brokers)
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: refusal,
				Count: 1})
			batch := b.poll("one", "two")
			err := b.Begin(t.Context(), batch)
			if !errors.Is(err, consumer.ErrRevoked) || !errors.Is(err, refusal) {
				t.Fatal(err)
			}
			if err := b.Abort(t.Context(), batch, err); !errors.Is(err, consumer.ErrAborted) {
				t.Fatal(err)
			}
			if err := b.commit(b.poll("one", "two")); err != nil {
				t.Fatal(err)
			}
			b.waitCommitted(2)
		})
	}
}

// Until it hears of that, it would poll what others have handled, and claim it.
func TestAMemberThatTheGroupHasGivenUpEndsItsSession(t *testing.T) {
	for name, partition := range map[string]int32{"others went on with the batch's partition": 0,
		"with another one": 1} {
		t.Run(name, func(t *testing.T) {
			cluster, brokers := testkit.FakeKafka(t)
			b := newBooth(t, brokers)
			first := b.commit(b.poll("one", "two"))
			b.produce(1, "other")
			if err := errors.Join(first, b.commit(b.poll("other"))); err != nil {
				t.Fatal(err)
			}
			b.OthersCommitted(partition)
			b.produce(0, "three")
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit},
				Err: kerr.UnknownMemberID, Count: 1})
			batch := b.poll("three")
			refused := b.Begin(t.Context(), batch)
			if err := b.Abort(t.Context(), batch, refused); errors.Is(err, consumer.ErrAborted) ||
				!errors.Is(err, consumer.ErrGoneOn) {
				t.Error(err)
			}
		})
	}
}

// The lane gives the batch back when shutdown_timeout has passed, and the next owner does not wait
// for its offsets.
func TestABatchIsGivenBackAfterTheWorkWasToldToEnd(t *testing.T) {
	booths(t, func(b *booth) {
		b.SetPatience(time.Minute) // longer than a busy machine takes to look
		batch := b.poll("one", "two")
		b.waitOngoing(true)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Abort(ended, batch, ended.Err()); !errors.Is(err, consumer.ErrAborted) {
			t.Fatal(err)
		}
		b.waitOngoing(false)
	})
}

// The client does not see the commits that it did not send as such. A lag that does not go down
// would end the session.
func TestTheLagIsThatBehindTheCommits(t *testing.T) {
	booths(t, func(b *booth) {
		if err := b.commit(b.poll("one", "two")); err != nil {
			t.Fatal(err)
		}
		b.produce(0, "three")
		testkit.Eventually(t, 20*time.Second, "a lag of one record", func() bool {
			b.Measure(t.Context())
			lag := b.Assignments()[0].Lag
			return lag != nil && *lag == 1
		})
	})
}
