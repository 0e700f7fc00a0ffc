package kafka_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

func alter(t *testing.T, client *kgo.Client, topic string, values map[string]string) {
	t.Helper()
	var changes []kadm.AlterConfig
	for key, value := range values {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value})
	}
	answers, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), changes, topic)
	if err == nil {
		_, err = answers.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Records of the input may be as old as its retention, and are forwarded with their own timestamps.
func TestSetupMakesTopicsLikeTheInput(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		topic.DuplicatesTopic = ""
		alter(t, client, topic.Input, map[string]string{"retention.ms": "-1",
			"min.insync.replicas": "1"})
		want := []string{
			"created topic IN.clean (3 partitions, 1 replica, max.message.bytes=2000000, " +
				"retention.ms=-1, min.insync.replicas=1)",
			"created topic IN.dlq (3 partitions, 1 replica, max.message.bytes=2065536, " +
				"retention.ms=-1, min.insync.replicas=1)",
			"created topic IN.fence (3 partitions, 1 replica, min.insync.replicas=1, " +
				"cleanup.policy=compact)",
		}
		var said []string
		testkit.Eventually(t, topicsLimit, "settings that the brokers know", func() bool {
			said = setup(t, client, topic, true)
			return strings.Contains(said[0], "retention.ms=-1, min")
		})
		if diff := cmp.Diff(want, setup(t, client, topic, false)); diff != "" {
			t.Error(diff)
		}
		compared, err := kafka.Compare(t.Context(), kafka.OneCluster(client), topic)
		if err != nil || len(compared.Told)+len(compared.Refused) > 0 {
			t.Errorf("%+v, %v", compared, err)
		}
	})
}

func TestTopicsThatEatRecordsAreTold(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		topic.DuplicatesTopic, topic.DeadLetterTopic = "", ""
		alter(t, client, topic.Input, map[string]string{"retention.ms": "-1"})
		setup(t, client, topic, false)
		for _, c := range []struct {
			name, key, value, back string
			told, refused          string
		}{
			{"retention", "retention.ms", "604800000", "-1",
				"topic IN.clean has retention.ms=604800000, IN has -1: records older than 7 days " +
					"are deleted as soon as they are forwarded", ""},
			{"the size", "max.message.bytes", "1000000", "2000000",
				"topic IN.clean has max.message.bytes=1000000, IN has 2000000: it refuses " +
					"records in between", ""},
			{"the kind of time", "message.timestamp.type", "LogAppendTime", "CreateTime",
				"topic IN.clean has message.timestamp.type=LogAppendTime: records get the time " +
					"at which they are forwarded in place of their own", ""},
			{"compaction", "cleanup.policy", "compact", "delete", "",
				"topic IN.clean has cleanup.policy=compact: of the messages of one key only the " +
					"last is kept, and records without a key are refused; " +
					"set cleanup.policy=delete, or allow_compacted_output: true if that is meant"},
			{"copies", "min.insync.replicas", "2", "1", "",
				"topic IN.clean has min.insync.replicas=2 and 1 replicas: it takes no record"},
		} {
			t.Run(c.name, func(t *testing.T) {
				alter(t, client, topic.Output, map[string]string{c.key: c.value})
				defer alter(t, client, topic.Output, map[string]string{c.key: c.back})
				short := func(list []string) (out []string) {
					for _, text := range list {
						out = append(out, strings.ReplaceAll(text, topic.Input, "IN"))
					}
					return out
				}
				testkit.Eventually(t, topicsLimit, c.told+c.refused, func() bool {
					compared, err := kafka.Compare(t.Context(), kafka.OneCluster(client), topic)
					return err == nil &&
						(c.told == "" || slices.Contains(short(compared.Told), c.told)) &&
						(c.refused == "" || slices.Contains(short(compared.Refused), c.refused))
				})
			})
		}
		topic.AllowCompactedOutput = true
		alter(t, client, topic.Output, map[string]string{"cleanup.policy": "compact"})
		testkit.Eventually(t, topicsLimit, "nothing refused", func() bool {
			compared, err := kafka.Compare(t.Context(), kafka.OneCluster(client), topic)
			return err == nil && len(compared.Refused) == 0
		})
	})
}

// Managed platforms refuse some sizes and settings, each in its own words.
func TestSetupGoesOnWithoutASettingThatTheBrokersRefuse(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := config.DefaultTopic()
	topic.Input = testkit.Topic(t, brokers, "orders", 2, map[string]string{"retention.ms": "-1"})
	topic.Output, topic.FenceTopic = topic.Input+".clean", topic.Input+".fence"
	cluster.ControlKey(int16(kmsg.CreateTopics), func(request kmsg.Request) (kmsg.Response, error,
		bool) {
		cluster.KeepControl()
		asked := request.(*kmsg.CreateTopicsRequest).Topics[0]
		if !slices.ContainsFunc(asked.Configs, func(c kmsg.CreateTopicsRequestTopicConfig) bool {
			return c.Name == "max.message.bytes"
		}) {
			return nil, nil, false
		}
		answer := request.ResponseKind().(*kmsg.CreateTopicsResponse)
		refused := kmsg.NewCreateTopicsResponseTopic()
		refused.Topic, refused.ErrorCode = asked.Topic, kerr.PolicyViolation.Code
		refused.ErrorMessage = kmsg.StringPtr(
			"max.message.bytes must be at most 1048588 on this cluster")
		answer.Topics = append(answer.Topics, refused)
		return answer, nil, true
	})
	said := setup(t, client, topic, false)
	if len(said) != 3 || !strings.HasPrefix(said[0],
		"the brokers refuse max.message.bytes=1048588 for topic IN.clean (POLICY_VIOLATION") ||
		said[1] != "created topic IN.clean (2 partitions, 1 replica, retention.ms=-1)" {
		t.Errorf("said %q", said)
	}
}
