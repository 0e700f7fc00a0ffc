package kafka_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

// ofRedpanda are the requests that Redpanda does not name with enable_transactions=false, and Azure
// Event Hubs without its preview.
var ofRedpanda = []kmsg.Key{kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit,
	kmsg.EndTxn}

const ofRedpandaMissing = "the brokers, or a proxy before them, do not answer " +
	"AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn"

func without(keys ...kmsg.Key) kfake.Opt {
	v := kversion.Stable()
	for _, key := range keys {
		v.SetMaxKeyVersion(int16(key), -1)
	}
	return kfake.MaxVersions(v)
}

// answering has the fake answer each request of a key with an error.
func answering(cluster *kfake.Cluster, key kmsg.Key, answer func(kmsg.Request) kmsg.Response) {
	cluster.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return answer(r), nil, true
	})
}

func refuseOffsets(code *kerr.Error) func(*kfake.Cluster) {
	return func(cluster *kfake.Cluster) {
		answering(cluster, kmsg.AddOffsetsToTxn, func(r kmsg.Request) kmsg.Response {
			answer := r.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
			answer.ErrorCode = code.Code
			return answer
		})
	}
}

func TestMissingTransactionsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		opts []kfake.Opt
		set  func(*kfake.Cluster)
		want string
	}{
		"brokers that have them": {},
		"Redpanda with enable_transactions=false, Event Hubs": {
			opts: []kfake.Opt{without(ofRedpanda...)}, want: ofRedpandaMissing},
		"without idempotent producers either": {
			opts: []kfake.Opt{without(append(ofRedpanda, kmsg.InitProducerID)...)},
			want: "the brokers, or a proxy before them, do not answer InitProducerID, " +
				"AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn"},
		"Kafka 2.4": {opts: []kfake.Opt{kfake.MaxVersions(kversion.V2_4_0())},
			want: "the brokers let anyone commit the offsets of a transaction: they answer " +
				"TxnOffsetCommit up to version 2, and Kafka 2.5, which checks the member (KIP-447), " +
				"up to 3"},
		"a proxy that names the requests and refuses them": {
			set:  refuseOffsets(kerr.UnsupportedVersion),
			want: "the brokers refuse AddOffsetsToTxn: " + kerr.UnsupportedVersion.Error()},
		"a policy against transactions": {set: refuseOffsets(kerr.PolicyViolation),
			want: "the brokers refuse AddOffsetsToTxn: " + kerr.PolicyViolation.Error()},
		"rights that are missing are told elsewhere": {
			set: refuseOffsets(kerr.TransactionalIDAuthorizationFailed)},
		"a coordinator without a place": {
			set: refuseOffsets(kerr.CoordinatorNotAvailable),
			want: "no coordinator of transactions answers, as where " +
				"transaction.state.log.replication.factor is above the number of brokers (" +
				kerr.CoordinatorNotAvailable.Error() + ")"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, addresses := testkit.FakeKafka(t, c.opts...)
			if c.set != nil {
				c.set(cluster)
			}
			client := testkit.KafkaClient(t, addresses, kgo.RequestRetries(1))
			err := kafka.CheckTransactions(t.Context(), client, "member", "group")
			if got := text(err); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestARealKafkaBehindAProxyHasTheTransactionsThatItLetsThrough(t *testing.T) {
	addresses := testkit.Kafka(t)
	for name, c := range map[string]struct {
		hidden []kmsg.Key
		want   string
	}{
		"all":  {nil, ""},
		"none": {ofRedpanda, ofRedpandaMissing},
	} {
		t.Run(name, func(t *testing.T) {
			client := testkit.KafkaClient(t, testkit.HidingProxies(t, addresses, c.hidden...))
			err := kafka.CheckTransactions(t.Context(), client, "member-of-nobody", "group")
			if got := text(err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The answers are those of Inkless: KafkaApis.handleAddPartitionsToTxnRequest.
func TestATopicThatTakesNoTransactionsIsNamed(t *testing.T) {
	cluster, addresses := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders", "orders.clean",
		"orders.dlq", "orders.fence"))
	answering(cluster, kmsg.AddPartitionsToTxn, func(r kmsg.Request) kmsg.Response {
		answer := r.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
		for _, topic := range r.(*kmsg.AddPartitionsToTxnRequest).Topics {
			p := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			if p.ErrorCode = kerr.OperationNotAttempted.Code; topic.Topic == "orders.clean" {
				p.ErrorCode = kerr.InvalidTopicException.Code
			}
			answer.Topics = append(answer.Topics, kmsg.AddPartitionsToTxnResponseTopic{
				Topic:      topic.Topic,
				Partitions: []kmsg.AddPartitionsToTxnResponseTopicPartition{p}})
		}
		return answer
	})
	allDiskless(cluster)
	topic := config.DefaultTopic()
	topic.Input, topic.Output, topic.FenceTopic = "orders", "orders.clean", "orders.fence"
	topic.DeadLetterTopic = "orders.dlq"
	client := testkit.KafkaClient(t, addresses)
	got := texts(kafka.CheckTransactional(t.Context(), kafka.OneCluster(client), topic, "member"),
		topic)
	want := []string{"topic IN.clean has diskless.enable=true and takes no transactions (" +
		kerr.InvalidTopicException.Error() + "): name one that does, or set delivery: " +
		"at_least_once, which needs none and may repeat the batch in hand when a process dies " +
		"(docs/recipes/brokers.md)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// allDiskless has the fake say that all topics are diskless.
func allDiskless(cluster *kfake.Cluster) {
	answering(cluster, kmsg.DescribeConfigs, func(r kmsg.Request) kmsg.Response {
		answer := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, resource := range r.(*kmsg.DescribeConfigsRequest).Resources {
			answer.Resources = append(answer.Resources, kmsg.DescribeConfigsResponseResource{
				ResourceType: resource.ResourceType, ResourceName: resource.ResourceName,
				Configs: []kmsg.DescribeConfigsResponseResourceConfig{{Name: "diskless.enable",
					Value: kmsg.StringPtr("true"), Source: kmsg.ConfigSourceDynamicTopicConfig}}})
		}
		return answer
	})
}

// What is to be in a transaction, or compacted, must not be diskless.
func TestSetupMakesNoDisklessTopicsForWhatTheyLack(t *testing.T) {
	cluster, addresses := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
	allDiskless(cluster)
	client := testkit.KafkaClient(t, addresses)
	topic := config.DefaultTopic()
	topic.Input, topic.Output, topic.FenceTopic = "orders", "orders.clean", "orders.fence"
	for delivery, output := range map[config.Delivery]string{
		config.DeliveryExactlyOnce: "false", config.DeliveryAtLeastOnce: "true",
	} {
		topic.Delivery = delivery
		want := []string{
			"would create topic IN.clean (2 partitions, 1 replica, max.message.bytes=1048588, " +
				"diskless.enable=" + output + ")",
			"would create topic IN.fence (2 partitions, 1 replica, diskless.enable=false, " +
				"cleanup.policy=compact)",
		}
		if diff := cmp.Diff(want, setup(t, client, topic, true)); diff != "" {
			t.Errorf("%s: %s", delivery, diff)
		}
	}
}

// What is asked for is refused for its producer: nothing is added to a transaction that is open.
func TestTopicsOfOrdinaryBrokersTakeTransactions(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		setup(t, client, topic, false)
		for _, open := range []string{"", "a producer has the ID"} {
			if open != "" {
				request := kmsg.NewPtrInitProducerIDRequest()
				request.TransactionalID = kmsg.StringPtr(topic.Input)
				request.TransactionTimeoutMillis = 60_000
				if _, err := request.RequestWith(t.Context(), client); err != nil {
					t.Fatal(err)
				}
			}
			err := kafka.CheckTransactions(t.Context(), client, topic.Input, topic.Input)
			if err != nil {
				t.Error(open, err)
			}
			if got := kafka.CheckTransactional(t.Context(), kafka.OneCluster(client), topic,
				topic.Input); len(got) > 0 {
				t.Error(open, got)
			}
		}
	})
}

func TestAFenceTopicThatKeepsAllFencesIsTaken(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		topic.DuplicatesTopic, topic.DeadLetterTopic = "", ""
		setup(t, client, topic, false)
		waitCheck(t, client, topic, []string{})
		for _, c := range []struct {
			settings map[string]string
			refused  bool
		}{
			{map[string]string{"cleanup.policy": "delete", "retention.ms": "-1",
				"retention.bytes": "-1"}, false},
			{map[string]string{"retention.ms": "604800000"}, true},
			{map[string]string{"retention.ms": "-1", "retention.bytes": "1000000"}, true},
		} {
			alter(t, client, topic.FenceTopic, c.settings)
			testkit.Eventually(t, topicsLimit, "the fence topic is looked at", func() bool {
				got := kafka.Check(t.Context(), kafka.OneCluster(client), topic)
				return len(got) == map[bool]int{true: 1, false: 0}[c.refused] &&
					(!c.refused || strings.Contains(got[0].Error(), "retention.ms=-1 and "+
						"retention.bytes=-1"))
			})
		}
	})
}

func TestSetupMakesAFenceTopicThatKeepsAllWhereNoneIsCompacted(t *testing.T) {
	cluster, addresses := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
	cluster.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		create := r.(*kmsg.CreateTopicsRequest)
		for _, c := range create.Topics[0].Configs {
			if c.Name == "cleanup.policy" && *c.Value == "compact" {
				answer := r.ResponseKind().(*kmsg.CreateTopicsResponse)
				topic := kmsg.NewCreateTopicsResponseTopic()
				topic.Topic, topic.ErrorCode = create.Topics[0].Topic, kerr.PolicyViolation.Code
				topic.ErrorMessage = kmsg.StringPtr("compaction is not supported")
				answer.Topics = append(answer.Topics, topic)
				return answer, nil, true
			}
		}
		return nil, nil, false
	})
	topic := config.DefaultTopic()
	topic.Input, topic.Output, topic.FenceTopic = "orders", "orders.clean", "orders.fence"
	client := testkit.KafkaClient(t, addresses)
	said := setup(t, client, topic, false)
	want := "created topic IN.fence (2 partitions, 1 replica, cleanup.policy=delete, " +
		"retention.ms=-1, retention.bytes=-1)"
	if last := said[len(said)-1]; last != want {
		t.Errorf("said %q", said)
	}
	if got := kafka.Check(t.Context(), kafka.OneCluster(client), topic); len(got) > 0 {
		t.Error(got)
	}
	compared, err := kafka.Compare(t.Context(), kafka.OneCluster(client), topic)
	if err != nil || len(compared.Told) != 1 ||
		!strings.Contains(compared.Told[0], "fence topic orders.fence is not compacted") {
		t.Errorf("told %q, %v", compared.Told, err)
	}
}
