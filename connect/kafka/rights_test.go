package kafka

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

// The real broker is asked by e2e TestSecurity, which also takes every right away once.
func TestCheckRightsNamesWhatIsMissingAndOnWhat(t *testing.T) {
	topic := config.DefaultTopic()
	topic.Input, topic.Output, topic.ConsumerGroup = "orders", "orders.clean", "orders-dedup"
	topic.FenceTopic, topic.DeadLetterTopic = "orders-dedup.fence", "orders.dlq"
	const tail = "; docs/security.md lists the rights and the commands that grant them"
	for _, c := range []struct {
		name     string
		delivery config.Delivery
		allowed  []kfake.ACL
		want     []string
	}{
		{"nothing allowed, exactly_once", config.DeliveryExactlyOnce, nil, []string{
			"consumer group orders-dedup: the Kafka ACLs do not allow Read" + tail,
			"topic orders-dedup.fence: the Kafka ACLs do not allow Write, DescribeConfigs, Read" +
				tail,
			"topic orders.clean: the Kafka ACLs do not allow Write, DescribeConfigs, Read" + tail,
			"topic orders.dlq: the Kafka ACLs do not allow Write, DescribeConfigs, Read" + tail,
			"topic orders: the Kafka ACLs do not allow Read" + tail,
			"transactional ID orders-dedup-one-0: the Kafka ACLs do not allow Write" + tail,
		}},
		{"at_least_once reads only the fences of what it writes", config.DeliveryAtLeastOnce,
			[]kfake.ACL{
				allow(kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLOperationRead),
				allow(kmsg.ACLResourceTypeGroup, "orders-dedup", kmsg.ACLOperationRead),
				allow(kmsg.ACLResourceTypeTopic, "orders.clean", kmsg.ACLOperationWrite),
				allow(kmsg.ACLResourceTypeTopic, "orders.dlq", kmsg.ACLOperationDescribe),
				allow(kmsg.ACLResourceTypeTopic, "orders-dedup.fence", kmsg.ACLOperationWrite),
				allow(kmsg.ACLResourceTypeTopic, "orders-dedup.fence",
					kmsg.ACLOperationDescribeConfigs),
			}, []string{
				"topic orders-dedup.fence: the Kafka ACLs do not allow Read" + tail,
				"topic orders.clean: the Kafka ACLs do not allow DescribeConfigs" + tail,
				"topic orders.dlq: the Kafka ACLs do not allow Write, DescribeConfigs" + tail,
			}},
		{"everything allowed", config.DeliveryExactlyOnce, []kfake.ACL{
			allow(kmsg.ACLResourceTypeTopic, "*", kmsg.ACLOperationAll),
			allow(kmsg.ACLResourceTypeGroup, "*", kmsg.ACLOperationAll),
			allow(kmsg.ACLResourceTypeTransactionalId, "*", kmsg.ACLOperationAll),
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t, kfake.EnableSASL(), kfake.EnableACLs(),
				kfake.Superuser("PLAIN", "admin", "admin"),
				kfake.SeedTopics(1, "orders", "orders.clean", "orders.dlq", "orders-dedup.fence"),
				kfake.User("PLAIN", "ann", "secret", c.allowed...))
			client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
				kgo.SASL(plain.Auth{User: "ann", Pass: "secret"}.AsMechanism()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			topic.Delivery = c.delivery
			var got []string
			for _, err := range CheckRights(t.Context(), OneCluster(client), topic,
				[]string{"orders-dedup-one-0"}) {
				got = append(got, err.Error())
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func allow(kind kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: operation, Allow: true}
}

func TestBrokersThatDoNotTellWhatTheyAllowAreTrusted(t *testing.T) {
	needs := []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationWrite}
	for name, c := range map[string]struct {
		allowed int32
		code    int16
		want    []kmsg.ACLOperation
	}{
		"nothing was filled in":      {math.MinInt32, 0, nil},
		"a field that stays at zero": {0, 0, nil},
		"one of both is allowed": {1<<kmsg.ACLOperationDescribe | 1<<kmsg.ACLOperationRead, 0,
			needs[1:]},
		"the topic is hidden":  {math.MinInt32, kerr.TopicAuthorizationFailed.Code, needs},
		"the topic is missing": {math.MinInt32, kerr.UnknownTopicOrPartition.Code, nil},
	} {
		got := notAllowed(kmsg.MetadataResponseTopic{AuthorizedOperations: c.allowed,
			ErrorCode: c.code}, needs)
		if len(got) != len(c.want) || len(got) > 0 && !cmp.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
