package kafkalog_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/logtest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func newScope(t *testing.T) dedup.Scope {
	t.Helper()
	group := "claimlog-" + strings.ToLower(strings.NewReplacer("/", "-", "_",
		"-").Replace(t.Name())) + time.Now().Format("-150405.000000")
	return dedup.Scope{ConsumerGroup: group, Name: "orders", TTL: time.Hour, Buckets: 16,
		Extractor: "key"}
}

// A topic that was deleted and made again has none of the claims that an index still knows.
func TestARecreatedTopicIsNoticed(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs, scope := newMade(t, brokers, 2), newScope(t)
		running := logtest.Open(t, claimlog.Options{Opener: logs, Wait: 2 * time.Second,
			Path: t.TempDir()})
		stopped := claimlog.Options{Opener: logs, Wait: 2 * time.Second, Path: t.TempDir()}
		before := claimlog.Open(stopped)
		logtest.WantOwner(t, logtest.MustClaim(t, running, scope, logtest.ClaimOf("a", 1)), 1)
		logtest.WantOwner(t, logtest.MustClaim(t, before, scope, logtest.ClaimOf("a", 2)), 1)
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		recreate(t, logs, logs.Topic(scope.ConsumerGroup))
		again := logtest.Open(t, stopped)
		logtest.WantOwner(t, logtest.MustClaim(t, again, scope, logtest.ClaimOf("a", 4)), 4)
		testkit.Eventually(t, time.Minute, "the process that runs claims nothing", func() bool {
			_, err := running.Claim(t.Context(), scope, []dedup.Claim{logtest.ClaimOf("a", 3)})
			return err != nil && strings.Contains(err.Error(), "deleted and made again, so its")
		})
	})
}

func recreate(t *testing.T, logs *made, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := kadm.NewClient(logs.client).DeleteTopic(ctx, topic); err != nil {
		t.Fatal(err)
	}
	group := strings.TrimSuffix(topic, ".claims")
	testkit.Eventually(t, time.Minute, "the topic is made again", func() bool {
		return logs.create(group)
	})
}

// What retention has removed before it was read had ended; all else is read again.
func TestALogWhoseBeginningHasPassedTheIndexIsReadAgain(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		logs, scope := newMade(t, brokers, 1), newScope(t)
		stopped := claimlog.Options{Opener: logs, Wait: logtest.Patience, Path: t.TempDir()}
		before := claimlog.Open(stopped)
		logtest.WantOwner(t, logtest.MustClaim(t, before, scope, logtest.ClaimOf("a", 1)), 1)
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		other := logtest.Open(t, claimlog.Options{Opener: logs, Wait: logtest.Patience})
		logtest.WantOwner(t, logtest.MustClaim(t, other, scope, logtest.ClaimOf("b", 2)), 2)
		logtest.WantOwner(t, logtest.MustClaim(t, other, scope, logtest.ClaimOf("c", 3)), 3)
		var removed kadm.Offsets
		removed.AddOffset(logs.Topic(scope.ConsumerGroup), 0, 2, -1)
		if _, err := kadm.NewClient(logs.client).DeleteRecords(t.Context(), removed); err != nil {
			t.Fatal(err)
		}
		again := logtest.Open(t, stopped)
		if err := again.AcceptLoss(t.Context(), scope); err != nil { // as these had not ended
			t.Fatal(err)
		}
		logtest.WantOwner(t, logtest.MustClaim(t, again, scope, logtest.ClaimOf("c", 4)), 3)
		logtest.WantOwner(t, logtest.MustClaim(t, again, scope, logtest.ClaimOf("a", 5)), 5)
	})
}

// A new leader that says that it has less of an epoch than was read of it has cut the log.
func TestANewLeaderIsAskedWhatItHas(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t, kfake.NumBrokers(2))
	logs, scope := newMade(t, brokers, 1), newScope(t)
	said := &testkit.Printed{}
	s := logtest.Open(t, claimlog.Options{Opener: logs, Wait: time.Second,
		Logger: slog.New(slog.NewTextHandler(said, nil))})
	logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("a", 1)), 1)
	logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("b", 2)), 2)
	topic := logs.Topic(scope.ConsumerGroup)
	cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch),
		func(request kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			if strings.Contains(said.String(), "the index is made again") {
				return nil, nil, false
			}
			answer := request.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
			for _, asked := range request.(*kmsg.OffsetForLeaderEpochRequest).Topics {
				one := kmsg.NewOffsetForLeaderEpochResponseTopic()
				one.Topic = asked.Topic
				for _, p := range asked.Partitions {
					partition := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
					partition.Partition, partition.LeaderEpoch, partition.EndOffset = p.Partition,
						p.LeaderEpoch, 1
					one.Partitions = append(one.Partitions, partition)
				}
				answer.Topics = append(answer.Topics, one)
			}
			return answer, nil, true
		})
	leader := cluster.LeaderFor(topic, 0)
	if err := cluster.MoveTopicPartition(topic, 0, 1-leader); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the cut is noticed", func() bool {
		_, _ = s.Claim(t.Context(), scope, []dedup.Claim{logtest.ClaimOf("c", 3)})
		return strings.Contains(said.String(), "the index is made again from the claim log")
	})
	logtest.WantOwner(t, logtest.MustClaim(t, s, scope, logtest.ClaimOf("b", 4)), 2)
}

func TestATopicThatCannotBeAClaimLogIsRefused(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	logs := newMade(t, brokers, 1)
	for setting, value := range map[string]string{"cleanup.policy": "compact",
		"message.timestamp.type": "CreateTime", "retention.bytes": "1000",
		"max.message.bytes": "1000"} {
		scope := newScope(t)
		logs.ready(scope.ConsumerGroup)
		alter(t, logs.client, logs.Topic(scope.ConsumerGroup), setting, value)
		_, err := logs.Logs.Open(t.Context(), scope.ConsumerGroup)
		if err == nil || !strings.Contains(err.Error(), setting+" is "+value+" and must be ") {
			t.Errorf("%s=%s: %v", setting, value, err)
		}
	}
	short := newScope(t).ConsumerGroup
	logs.ready(short)
	if err := logs.Check(t.Context(), short, 24*time.Hour); err != nil {
		t.Error(err)
	}
	if err := logs.Check(t.Context(), short, 25*time.Hour); err == nil ||
		!strings.Contains(err.Error(), "the log keeps blocks for 25h0m0s, and must for at least") {
		t.Error(err)
	}
	scope := newScope(t)
	logs.ready(scope.ConsumerGroup)
	alter(t, logs.client, logs.Topic(scope.ConsumerGroup)+".scopes", "retention.ms", "1000")
	if _, err := logs.Logs.Registry(scope.ConsumerGroup).Decided(t.Context(), "log"); err == nil ||
		!strings.Contains(err.Error(), "retention.ms is 1000 and must be -1") {
		t.Error(err)
	}
}

func alter(t *testing.T, client *kgo.Client, topic, key, value string) {
	t.Helper()
	changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}
	if _, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), changes, topic); err != nil {
		t.Fatal(err)
	}
}

func TestMissingTopicsNameTheRemedy(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	logs := newMade(t, brokers, 1)
	_, err := logs.Logs.Open(t.Context(), "nobody")
	if err == nil || !strings.Contains(err.Error(),
		"nobody.claims: it does not exist; run: kdedup setup -c FILE") {
		t.Error(err)
	}
	if _, err := logs.Logs.Registry("nobody").Decided(t.Context(), "log"); err == nil ||
		!strings.Contains(err.Error(),
			"nobody.claims.scopes: it does not exist; run: kdedup setup") {
		t.Error(err)
	}
}
