package consumer

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// lenient is a real broker that takes transactional records of which the coordinator knows nothing.
// What they leave is what lost markers leave: a transaction that is open on the partition only.
func lenient(t *testing.T) []string {
	t.Helper()
	servers.Need(t)
	kafka, err := servers.StartKafka(t.Context(), servers.KafkaOptions{
		Dir: t.TempDir(), Heap: "384m", Config: map[string]string{"transaction.partition.verification.enable": "false"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kafka.Stop(); err != nil {
			t.Error(err)
		}
	})
	return []string{kafka.Addr()}
}

func TestATakeoverEndsTransactionsWhoseMarkersAreLost(t *testing.T) {
	brokers := lenient(t)
	topic := testkit.Topic(t, brokers, "fence", 1, nil)
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.Produce), 11) // later ones tell the coordinator (KIP-890)
	client := newClient(t, brokers, kgo.MaxVersions(versions))
	w := &writer{t, newClient(t, brokers, kgo.TransactionalID(topic+"-0")), topic}
	w.transaction(kgo.TryCommit, 10, 0)
	id, epoch, err := w.client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	member := topic + "-0"
	testkit.Eventually(t, time.Minute, "the markers of the first transaction", func() bool {
		described, err := kadm.NewClient(client).DescribeTransactions(t.Context(), member)
		return err == nil && described[member].State == "CompleteCommit"
	})
	produceRaw(t, client, member, topic, rawBatch(id, epoch, fenceRecord(topic, "orders", 0, upTo(20))))
	impatient := &fenceReader{client: client, topic: topic, input: "orders", patience: time.Second}
	if err := impatient.read(t.Context(), []int32{0}); !errors.Is(err, errHanging) {
		t.Fatalf("nothing hangs: %+v, %v", impatient.found, err)
	}
	options := Options{
		Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)}, ConsumerGroup: topic + "-group", FenceTopic: topic, Member: member,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if err := takeOver(t.Context(), &options); err != nil {
		t.Fatal(err)
	}
	got, err := readFences(t.Context(), client, topic, "orders", []int32{0})
	if err != nil || got[0].Next() != 10 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func produceRaw(t *testing.T, client *kgo.Client, member, topic string, batch []byte) {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = &member, -1, 10_000
	req.Topics = []kmsg.ProduceRequestTopic{{
		Topic: topic, TopicID: topicID(t, client, topic), Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batch}},
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

// rawBatch is a transactional batch of one record (KIP-98), as the first of its producer's epoch.
func rawBatch(id int64, epoch int16, r *kgo.Record) []byte {
	record := kmsg.Record{Key: r.Key, Value: r.Value}
	record.Length = int32(len(record.AppendTo(nil)) - 1) // a length of 0 takes one byte
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: 1 << 4, FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: id, ProducerEpoch: epoch, NumRecords: 1, Records: record.AppendTo(nil),
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}
