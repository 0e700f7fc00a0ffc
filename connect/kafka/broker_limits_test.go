package kafka_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// narrow is a real broker whose limits lie within what a configuration admits.
func narrow(t *testing.T, more map[string]string) []string {
	t.Helper()
	servers.Need(t)
	limits := map[string]string{
		"transaction.max.timeout.ms":   "10000",
		"group.min.session.timeout.ms": "20000",
		"group.max.session.timeout.ms": "25000",
		"group.max.size":               "2",
		"group.consumer.max.size":      "3",
		"group.consumer.assignors":     "uniform",
	}
	for key, value := range more {
		limits[key] = value
	}
	broker, err := servers.StartKafka(t.Context(), servers.KafkaOptions{Dir: t.TempDir(),
		Heap: "384m", Config: limits})
	return []string{servers.ForTest(t, broker, err).Addr()}
}

func limited(group string) config.Topic {
	topic := config.DefaultTopic()
	topic.Input, topic.ConsumerGroup = "orders", group
	topic.SessionTimeout, topic.TransactionTimeout, topic.Lanes = 22*time.Second, 10*time.Second, 2
	return topic
}

func refusals(t *testing.T, client *kgo.Client, topic config.Topic, lanes int) []string {
	t.Helper()
	var members []string
	for lane := range lanes {
		members = append(members, fmt.Sprintf("%s-%d@one", topic.ConsumerGroup, lane))
	}
	var all []string
	for _, err := range kafka.NewBrokerLimits(client).Check(t.Context(), topic, members) {
		all = append(all, err.Error())
	}
	return all
}

const unseen = ", whose value this user may not see (it takes DescribeConfigs on the cluster)"

// Whatever the settings are, those and no others are refused that the broker does not admit, also
// where it does not tell its limits.
func TestSettingsThatABrokerNeverAdmitsAreNamedWithItsLimits(t *testing.T) {
	brokers := narrow(t, nil)
	open := testkit.KafkaClient(t, brokers)
	closed := testkit.KafkaClient(t, testkit.HidingProxies(t, brokers, kmsg.DescribeConfigs))
	r := rand.New(rand.NewPCG(43, 5))
	seconds := func(from, to int) time.Duration {
		return time.Duration(from+r.IntN(to-from+1)) * time.Second
	}
	for i := range 60 {
		topic := limited(fmt.Sprintf("g-%d", i))
		topic.SessionTimeout, topic.TransactionTimeout = seconds(17, 28), seconds(6, 14)
		topic.Lanes = 1 + r.IntN(4)
		if r.IntN(3) == 0 {
			topic.Delivery = config.DeliveryAtLeastOnce
		}
		var want, hidden []string
		if topic.Lanes > 2 {
			want = append(want, fmt.Sprintf("lanes: must be at most 2 (group.max.size of broker 1), "+
				"got %d: each is a member of the consumer group", topic.Lanes))
		}
		if is := topic.SessionTimeout; is < 20*time.Second || is > 25*time.Second {
			limit := "at least 20s (group.min"
			if is > 25*time.Second {
				limit = "at most 25s (group.max"
			}
			want = append(want, fmt.Sprintf("session_timeout: must be %s.session.timeout.ms of "+
				"broker 1), got %s", limit, is))
			hidden = append(hidden, fmt.Sprintf("session_timeout: broker 1 refuses %s (%v): it is "+
				"below group.min.session.timeout.ms or above group.max.session.timeout.ms"+unseen,
				is, kerr.InvalidSessionTimeout))
		}
		if is := topic.TransactionTimeout; is > 10*time.Second &&
			topic.Delivery == config.DeliveryExactlyOnce {
			want = append(want, fmt.Sprintf("transaction_timeout: must be at most 10s "+
				"(transaction.max.timeout.ms of broker 1), got %s", is))
			hidden = append(hidden, fmt.Sprintf("transaction_timeout: broker 1 refuses %s (%v): it "+
				"is above transaction.max.timeout.ms"+unseen, is, kerr.InvalidTransactionTimeout))
		}
		if diff := cmp.Diff(want, refusals(t, open, topic, topic.Lanes)); diff != "" {
			t.Errorf("%+v: %s", topic, diff)
		}
		if diff := cmp.Diff(hidden, refusals(t, closed, topic, topic.Lanes)); diff != "" {
			t.Errorf("not allowed to see the limits: %s", diff)
		}
	}
	t.Run("group_protocol: consumer", func(t *testing.T) {
		topic := limited("server-side")
		topic.GroupProtocol, topic.Lanes = config.ProtocolConsumer, 4
		want := []string{"lanes: must be at most 3 (group.consumer.max.size of broker 1), got 4: " +
			"each is a member of the consumer group",
			"group_protocol: consumer needs the assignor range among group.consumer.assignors of " +
				"broker 1 (uniform): " + kerr.UnsupportedAssignor.Error()}
		if diff := cmp.Diff(want, refusals(t, open, topic, 4)); diff != "" {
			t.Error(diff)
		}
	})
}

// A check runs beside processes that work, with their names.
func TestToAskForLimitsDisturbsNoLane(t *testing.T) {
	for name, hidden := range map[string][]kmsg.Key{
		"limits that are told": nil, "limits that are not": {kmsg.DescribeConfigs},
	} {
		t.Run(name, func(t *testing.T) {
			real := testkit.Kafka(t)
			brokers := testkit.HidingProxies(t, real, hidden...)
			topic := config.DefaultTopic()
			topic.Input = testkit.Topic(t, real, "asked", 1, nil)
			topic.ConsumerGroup = topic.Input + "-dedup"
			lane, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(real...),
				kgo.TransactionalID(topic.ConsumerGroup+"-0@one"),
				kgo.ConsumerGroup(topic.ConsumerGroup), kgo.ConsumeTopics(topic.Input),
				kgo.Balancers(kgo.CooperativeStickyBalancer()))
			if err != nil {
				t.Fatal(err)
			}
			defer lane.Close()
			client := testkit.KafkaClient(t, brokers)
			for range 5 {
				if err := lane.Begin(); err != nil {
					t.Fatal(err)
				}
				if err := lane.ProduceSync(t.Context(), &kgo.Record{Topic: topic.Input,
					Value: []byte("a")}).FirstErr(); err != nil {
					t.Fatal(err)
				}
				if got := refusals(t, client, topic, 1); got != nil {
					t.Fatal(got)
				}
				committed, err := lane.End(t.Context(), kgo.TryCommit)
				if err != nil || !committed {
					t.Fatal(committed, err)
				}
			}
			members, err := kadm.NewClient(client).DescribeGroups(t.Context(), topic.ConsumerGroup)
			if err != nil || len(members[topic.ConsumerGroup].Members) > 1 {
				t.Errorf("%+v, %v", members, err)
			}
			if got := refusals(t, client, limited(topic.Input+"-nobody"), 1); got != nil {
				t.Error(got)
			}
			if groups, err := kadm.NewClient(client).ListGroups(t.Context()); err != nil ||
				slices.Contains(groups.Groups(), topic.Input+"-nobody") {
				t.Errorf("a group was made by asking, or %v", err)
			}
		})
	}
}

func TestAGroupThatNoLaneCanJoinIsNamed(t *testing.T) {
	brokers := testkit.Kafka(t)
	client := testkit.KafkaClient(t, brokers)
	topic := config.DefaultTopic()
	topic.Input = testkit.Topic(t, brokers, "unjoinable", 1, nil)

	share := topic.Input + "-share"
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID = share, "AAAAAAAAAAAAAAAAAAAAAA"
	req.SubscribedTopicNames = []string{topic.Input}
	testkit.Eventually(t, time.Minute, "a share group", func() bool {
		answer, err := req.RequestWith(t.Context(), client)
		return err == nil && answer.ErrorCode == 0
	})
	other := topic.Input + "-connect"
	connect := testkit.KafkaClient(t, brokers, kgo.ConsumerGroup(other),
		kgo.GroupProtocol("connect"), kgo.ConsumeTopics(topic.Input),
		kgo.Balancers(kgo.RangeBalancer()))
	testkit.Eventually(t, time.Minute, "a group of another kind", func() bool {
		_, generation := connect.GroupMetadata()
		return generation > 0
	})
	isShare := "consumer_group: " + share + " is a share group, which no consumer can join; name " +
		"another one, or delete that group"
	hasMembers := "consumer_group: " + other + " has members, of protocol type connect, which " +
		`assign partitions by "range": no lane can join beside them (` +
		kerr.InconsistentGroupProtocol.Error() + "); stop them, or name a group of this entry's own"
	for _, c := range []struct {
		group    string
		protocol config.GroupProtocol
		want     string
	}{
		{share, config.ProtocolClassic, isShare},
		{share, config.ProtocolConsumer, isShare},
		{other, config.ProtocolClassic, hasMembers},
		{topic.Input + "-new", config.ProtocolClassic, ""},
		{topic.Input + "-new", config.ProtocolConsumer, ""},
	} {
		topic.ConsumerGroup, topic.GroupProtocol = c.group, c.protocol
		if got := strings.Join(refusals(t, client, topic, 1), "\n"); got != c.want {
			t.Errorf("%s, %s:\n got %q\nwant %q", c.group, c.protocol, got, c.want)
		}
	}
}
