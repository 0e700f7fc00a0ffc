package kafka_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

// A dry run asks the brokers whether they would make the topics, and makes none.
func TestADryRunPromisesNothingThatTheBrokersRefuse(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		admin := kadm.NewClient(client)
		create := func(name string) {
			t.Helper()
			if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, name); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, topicsLimit, "topic "+name, func() bool {
				details, err := admin.ListTopics(t.Context(), name)
				return err == nil && details.Has(name)
			})
		}
		create(topic.Input + "_clean") // as the output is called, but for a dot
		for _, dryRun := range []bool{true, false} {
			err := kafka.Setup(t.Context(), kafka.OneCluster(client), topic, dryRun,
				func(string) {})
			if err == nil || !strings.Contains(err.Error(), topic.Output) ||
				!strings.Contains(err.Error(), "INVALID_TOPIC_EXCEPTION") {
				t.Errorf("dry run %v: %v", dryRun, err)
			}
		}
		details, err := admin.ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{topic.Output, topic.FenceTopic} {
			if details.Has(name) {
				t.Errorf("%s was made", name)
			}
		}
	})
}

func TestTopicsThatCollideWithEachOtherAreNamed(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		check := func(topics ...config.Topic) string {
			t.Helper()
			err := kafka.CheckCollisions(t.Context(), kafka.OneCluster(client), topics,
				[]string{topic.Input + ".claims"})
			if err == nil {
				return ""
			}
			return strings.ReplaceAll(err.Error(), topic.Input, "IN")
		}
		if got := check(topic, topic); got != "" { // entries may share a dead-letter topic
			t.Errorf("got %s", got)
		}
		other := topic
		other.Output, other.FenceTopic = topic.Input+"_clean", topic.Input+"_claims"
		const want = "of the topics IN.claims and IN_claims the brokers make only one, because . " +
			"and _ are the same to them: rename one of the two\n" +
			"of the topics IN.clean and IN_clean the brokers make only one, because . and _ are " +
			"the same to them: rename one of the two"
		if got := check(topic, other); got != want {
			t.Errorf("got %s", got)
		}
	})
}
