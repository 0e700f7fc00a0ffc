package client

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// lenient is a real broker that takes transactional records of which the coordinator knows nothing.
// What they leave is what lost markers leave: a transaction that is open on the partition only.
func lenient(t *testing.T) []string {
	t.Helper()
	servers.Need(t)
	kafka, err := servers.StartKafka(t.Context(), servers.KafkaOptions{
		Dir: t.TempDir(), Heap: "384m",
		Config: map[string]string{"transaction.partition.verification.enable": "false"},
	})
	return []string{servers.ForTest(t, kafka, err).Addr()}
}

func TestATakeoverEndsTransactionsWhoseMarkersAreLost(t *testing.T) {
	brokers := lenient(t)
	for name, end := range map[string]func(*testing.T, *kgo.Client, *Options){
		"of the lane itself": func(t *testing.T, _ *kgo.Client, o *Options) {
			if err := takeOver(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		},
		"of another lane": func(t *testing.T, client *kgo.Client, o *Options) {
			o.TransactionalID = o.ConsumerGroup + "-other-0"
			c := &Client{opts: *o, kafka: client, admin: kadm.NewClient(client)}
			if _, err := c.Fences(t.Context(), []int32{0}); err != nil {
				t.Error(err)
			}
		},
	} {
		for _, decided := range []struct {
			name string
			end  kgo.TransactionEndTry
			want int64
		}{
			{"committed", kgo.TryCommit, 20},
			{"aborted", kgo.TryAbort, 0},
		} {
			t.Run(name+"/"+decided.name, func(t *testing.T) {
				client, _, options := loseMarkers(t, brokers, decided.end)
				end(t, client, options)
				got, err := fence.Read(t.Context(), client, options.FenceTopic, "orders",
					[]int32{0}, time.Second)
				if err != nil || got.Fences[0].Next() != decided.want {
					t.Errorf("got %+v, %v, want %d", got, err, decided.want)
				}
			})
		}
	}
}

// The next transaction of a producer would decide over what the last one has left open.
func TestNoTransactionBeginsBehindOneWhoseMarkersAreLost(t *testing.T) {
	client, producer, options := loseMarkers(t, lenient(t), kgo.TryCommit)
	transactions := &Transactions{Client: &Client{opts: *options, kafka: producer,
		admin: kadm.NewClient(client)}, cuts: new(cuts)}
	transactions.cuts.OnBrokerDisconnect(kgo.BrokerMetadata{}, nil)
	if err := transactions.Begin(t.Context()); !errors.Is(err, consumer.ErrMarkersLost) {
		t.Errorf("got %v", err)
	}
}

// All processes may have to start again, and only lanes end what hangs.
func TestTheChecksOfAStartWaitForNoTransactionThatHangs(t *testing.T) {
	client, _, options := loseMarkers(t, lenient(t), kgo.TryCommit)
	ctx, cancel := context.WithTimeout(t.Context(), fence.Patience/4)
	defer cancel()
	g := Group{Name: options.ConsumerGroup, Input: options.Input, FenceTopic: options.FenceTopic}
	found, err := g.fences(ctx, client, []int32{0}, fence.AsCommitted)
	if err != nil || found.Fences[0].Next() != 10 {
		t.Errorf("got %+v, %v", found, err)
	}
}

// A transaction that may still end is left to its lane and its coordinator.
func TestAnOpenTransactionOfAnotherLaneIsLeftAlone(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		a := abandon(t, brokers)
		if err := endHanging(
			t.Context(), kadm.NewClient(testkit.KafkaClient(t, brokers)), &a.options, []int32{0, 1},
		); err != nil {
			t.Error(err)
		}
		if err := a.client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Errorf("the other lane lost its transaction: %v", err)
		}
	})
}

// loseMarkers leaves a fence of a transaction that its coordinator takes for ended, in one way or
// the other.
func loseMarkers(
	t *testing.T, brokers []string, end kgo.TransactionEndTry,
) (client, producer *kgo.Client, options *Options) {
	t.Helper()
	topic := testkit.Topic(t, brokers, "fence", 1, nil)
	options = optionsOf(t, brokers, topic, topic+"-group-one-0")
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.Produce), 11) // later ones tell the coordinator (KIP-890)
	client = testkit.KafkaClient(t, brokers, kgo.MaxVersions(versions))
	w := &writer{t, testkit.KafkaClient(t, brokers, kgo.TransactionalID(options.TransactionalID)),
		topic}
	_, before, err := w.client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.transaction(end, 10, 0)
	id, epoch, err := w.client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Before KIP-890 the next transaction goes on in the epoch, behind the first one's record.
	var sequence int32
	if epoch == before {
		sequence = 1
	}
	testkit.Eventually(t, time.Minute, "the markers of the first transaction", func() bool {
		described, err := kadm.NewClient(client).DescribeTransactions(t.Context(),
			options.TransactionalID)
		return err == nil && strings.HasPrefix(described[options.TransactionalID].State, "Complete")
	})
	produceRaw(t, client, options.TransactionalID, topic,
		rawBatch(id, epoch, sequence, fence.Record(topic, "orders", 0, upTo(20))))
	got, err := fence.Read(t.Context(), client, topic, "orders", []int32{0}, time.Second)
	if !errors.Is(err, fence.ErrHanging) {
		t.Fatalf("nothing hangs: %+v, %v", got, err)
	}
	return client, w.client, options
}

func produceRaw(t *testing.T, client *kgo.Client, member, topic string, batch []byte) {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = &member, -1, 10_000
	req.Topics = []kmsg.ProduceRequestTopic{{
		Topic: topic, TopicID: topicID(t, client, topic),
		Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batch}},
	}}
	answer, err := req.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func topicID(t *testing.T, client *kgo.Client, topic string) [16]byte {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	answer, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Topics[0].TopicID
}

// rawBatch is a transactional batch of one record (KIP-98).
func rawBatch(id int64, epoch int16, sequence int32, r *kgo.Record) []byte {
	record := kmsg.Record{Key: r.Key, Value: r.Value}
	record.Length = int32(len(record.AppendTo(nil)) - 1) // a length of 0 takes one byte
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: 1 << 4, FirstTimestamp: now,
		MaxTimestamp: now,
		ProducerID:   id, ProducerEpoch: epoch, FirstSequence: sequence, NumRecords: 1,
		Records: record.AppendTo(nil),
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:],
		crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}
