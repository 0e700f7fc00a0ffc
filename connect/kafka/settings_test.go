package kafka_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

// What cannot be asked for is told as that: everything is made, checked and compared without it.
func TestTopicsWhoseSettingsCannotBeAskedForAreToldAsThat(t *testing.T) {
	real := testkit.Kafka(t)
	for name, c := range map[string]struct {
		brokers []string
		why     string
	}{
		"a proxy that renames topics": {testkit.RenamingProxies(t, real),
			"its settings cannot be asked for: the brokers, or a proxy before them, know the topic " +
				"and refuse DescribeConfigs of it (UNKNOWN_TOPIC_OR_PARTITION"},
		"a proxy that answers no DescribeConfigs": {
			testkit.HidingProxies(t, real, kmsg.DescribeConfigs),
			"its settings cannot be asked for: "},
	} {
		t.Run(name, func(t *testing.T) {
			input := testkit.Topic(t, real, "untold", 3, nil)
			topic := config.DefaultTopic()
			topic.Input, topic.Output, topic.FenceTopic = input, input+".clean", input+".fence"
			topic.DeadLetterTopic = input + ".dlq"
			client := testkit.KafkaClient(t, c.brokers,
				kgo.MetadataMinAge(50*time.Millisecond)) // as setup has it
			said := strings.Join(setup(t, client, topic, false), "\n")
			for _, want := range []string{"topic IN: " + c.why, "created topic IN.clean",
				"created topic IN.dlq", "created topic IN.fence", "cleanup.policy=compact"} {
				if !strings.Contains(said, want) {
					t.Errorf("setup does not say %q:\n%s", want, said)
				}
			}
			one := kafka.OneCluster(client)
			if problems := kafka.Check(t.Context(), one, topic); problems != nil {
				t.Error(problems)
			}
			limits, err := kafka.LimitsOf(t.Context(), one, topic)
			if err != nil || len(limits.MaxBytes) > 0 {
				t.Errorf("%+v, %v", limits, err)
			}
			compared, err := kafka.Compare(t.Context(), one, topic)
			if err != nil || compared.Unknown == nil || len(compared.Refused) > 0 {
				t.Fatalf("%+v, %v", compared, err)
			}
			told := strings.Join(compared.Told, "\n")
			for _, want := range []string{c.why, "see to it that fence topic " + topic.FenceTopic +
				" is compacted"} {
				if !strings.Contains(told, want) {
					t.Errorf("not told: %q:\n%s", want, told)
				}
			}
			if strings.Contains(told, "is not compacted") {
				t.Errorf("told without knowing:\n%s", told)
			}
			admin := kadm.NewClient(client)
			if _, err := admin.DeleteTopics(t.Context(), topic.Output); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, topicsLimit, "a topic that is missing to be named", func() bool {
				problems := kafka.Check(t.Context(), one, topic)
				return len(problems) == 1 && strings.Contains(problems[0].Error(), topic.Output+
					" does not exist")
			})
		})
	}
}
