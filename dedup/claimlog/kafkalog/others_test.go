package kafkalog_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/logtest"
	"github.com/kdedup/kdedup/internal/testkit"
)

// longNamed is a scope whose group's name no other test has.
func longNamed(t *testing.T) dedup.Scope {
	scope := newScope(t)
	scope.ConsumerGroup = "others-" + scope.ConsumerGroup
	return scope
}

// claimed returns once an ID is claimed, or when the time is over.
func claimed(t *testing.T, s *claimlog.Store, scope dedup.Scope, id string) (err error) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		var answers []dedup.Answer
		answers, err = s.Claim(t.Context(), scope, []dedup.Claim{logtest.ClaimOf(id, 1)})
		if answers[0].Outcome != dedup.Undecided {
			return nil
		}
	}
	return err
}

// A client asks once for a producer ID. A refusal (rights that are withdrawn, or an authorizer that
// is not ready yet) stays with it for as long as it lives.
func TestARefusedProducerIDIsAskedForAgain(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t)
	logs, scope := newMade(t, brokers, 1), longNamed(t)
	logs.ready(scope.ConsumerGroup)
	var refused, asked atomic.Int32
	var right atomic.Bool
	cluster.ControlKey(int16(kmsg.InitProducerID),
		func(request kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			asked.Add(1)
			if right.Load() {
				return nil, nil, false
			}
			refused.Add(1)
			answer := request.ResponseKind().(*kmsg.InitProducerIDResponse)
			answer.ErrorCode = kerr.ClusterAuthorizationFailed.Code
			return answer, nil, true
		})
	right.Store(true) // for the registry
	s := logtest.Open(t, claimlog.Options{Opener: logs, Wait: time.Second})
	if err := s.Await(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	right.Store(false)
	_, err := s.Claim(t.Context(), scope, []dedup.Claim{logtest.ClaimOf("a", 1)})
	t.Logf("while the right is missing: %v", err)
	right.Store(true)
	if err := claimed(t, s, scope, "a"); err != nil {
		t.Errorf("30 s after the right is back: %v; refused %d times, asked %d times", err,
			refused.Load(), asked.Load())
	}
}

// Somebody else ends a transaction on the claims topic: a mirror, a restore tool, a console
// producer. Its marker has a place, which no reader is shown.
func TestTheEndOfATransactionIsAPlaceWithoutABlock(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs, scope := newMade(t, brokers, 1), longNamed(t)
		s := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 2 * time.Second})
		logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("a", 1)), 1)
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
			kgo.TransactionalID(scope.ConsumerGroup),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		foreign := &kgo.Record{Topic: logs.Topic(scope.ConsumerGroup), Value: []byte("not a block")}
		if err := client.ProduceSync(t.Context(), foreign).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), kgo.TryAbort); err != nil { // as by a mirror
			t.Fatal(err)
		}
		again := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 2 * time.Second})
		if err := claimed(t, again, scope, "c"); err != nil {
			t.Errorf("a process that starts, and has read all but the marker: %v", err)
		}
		if err := claimed(t, s, scope, "b"); err != nil {
			t.Errorf("a process that runs: %v", err)
		}
	})
}

// What a start would refuse, a running process notices, too.
func TestSettingsThatChangeLaterStopTheClaims(t *testing.T) {
	for setting, value := range map[string]string{"message.timestamp.type": "CreateTime",
		"retention.ms": "60000", "retention.bytes": "1000", "cleanup.policy": "compact,delete",
		"max.message.bytes": "2000"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
				logs, scope := newMade(t, brokers, 1), longNamed(t)
				s := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 2 * time.Second})
				logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("a", 1)), 1)
				alter(t, logs.client, logs.Topic(scope.ConsumerGroup), setting, value)
				// brokers apply a change after the controller has answered
				testkit.Eventually(t, 15*time.Second, "a start that refuses it", func() bool {
					return logs.Check(t.Context(), scope.ConsumerGroup, scope.TTL) != nil
				})
				offset := int64(2)
				testkit.Eventually(t, 15*time.Second, "an error", func() bool {
					offset++
					claims := []dedup.Claim{logtest.ClaimOf("b", offset)}
					_, err := s.Claim(t.Context(), scope, claims)
					return err != nil
				})
			})
		})
	}
}

func TestClaimsGoOnAfterOneRefusalOfABlock(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.InvalidProducerEpoch,
		kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidRecord,
		kerr.PolicyViolation, kerr.KafkaStorageError, kerr.NotEnoughReplicasAfterAppend,
		kerr.ProducerFenced, kerr.InvalidProducerIDMapping, kerr.ClusterAuthorizationFailed,
		kerr.InvalidTimestamp, kerr.UnknownServerError, kerr.MessageTooLarge} {
		t.Run(refusal.Message, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := testkit.FakeKafka(t)
			logs, scope := newMade(t, brokers, 1), longNamed(t)
			logs.ready(scope.ConsumerGroup)
			s := logtest.Open(t, claimlog.Options{Opener: logs, Wait: time.Second})
			logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("a", 1)), 1)
			var wrong atomic.Bool
			wrong.Store(true)
			cluster.ControlKey(int16(kmsg.Produce),
				func(request kmsg.Request) (kmsg.Response, error, bool) {
					cluster.KeepControl()
					if !wrong.Swap(false) {
						return nil, nil, false
					}
					answer := request.ResponseKind().(*kmsg.ProduceResponse)
					for _, asked := range request.(*kmsg.ProduceRequest).Topics {
						one := kmsg.NewProduceResponseTopic()
						one.Topic, one.TopicID = asked.Topic, asked.TopicID
						for _, p := range asked.Partitions {
							partition := kmsg.NewProduceResponseTopicPartition()
							partition.Partition, partition.ErrorCode = p.Partition, refusal.Code
							one.Partitions = append(one.Partitions, partition)
						}
						answer.Topics = append(answer.Topics, one)
					}
					return answer, nil, true
				})
			if err := claimed(t, s, scope, "b"); err != nil {
				t.Errorf("30 s after one refusal: %v", err)
			}
		})
	}
}

// The bytes of an attempt come once more from a producer which the broker does not know as stale: a
// killed process whose kernel went on sending.
func TestALateBlockUndoesNoRelease(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs, scope := newMade(t, brokers, 1), longNamed(t)
		s := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 5 * time.Second})
		logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("first", 1)), 1)
		logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("a", 2)), 2)
		topic := logs.Topic(scope.ConsumerGroup)
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
				topic: {0: kgo.NewOffset().At(0)}}))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var last []byte
		for last == nil {
			client.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) { last = r.Value })
		}
		if err := s.Release(t.Context(), scope, "a"); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(),
			&kgo.Record{Topic: topic, Value: last}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("a", 3)), 3)
	})
}

// The records of a claims topic were deleted, or retention was short for a while. A process without
// an index would forward copies of what is gone.
func TestAClaimsTopicThatLostItsBeginningIsNoticed(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs, scope := newMade(t, brokers, 1), longNamed(t)
		s := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 5 * time.Second})
		for i, id := range []string{"a", "b", "c"} {
			logtest.MustClaim(t, s, scope, logtest.ClaimOf(id, int64(i)))
		}
		admin, topic := kadm.NewClient(logs.client), logs.Topic(scope.ConsumerGroup)
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 2, LeaderEpoch: -1})
		deleted, err := admin.DeleteRecords(t.Context(), offsets)
		if err == nil {
			err = deleted.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		fresh := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 2 * time.Second})
		_, err = fresh.Claim(t.Context(), scope, []dedup.Claim{logtest.ClaimOf("a", 9)})
		if err == nil || !strings.Contains(err.Error(), dedup.ErrLost.Error()) {
			t.Fatalf("a process without an index claims: %v", err)
		}
		if err := fresh.AcceptLoss(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
		if err := claimed(t, fresh, scope, "d"); err != nil {
			t.Error(err)
		}
	})
}
