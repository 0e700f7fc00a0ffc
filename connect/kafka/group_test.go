package kafka_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestAGroupIsInUseWhileItHasMembersOrCommits(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		for name, balancing := range map[string][]kgo.Opt{"classic": nil,
			"led by the broker": {kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}} {
			group := topic.Input + "-" + strings.ReplaceAll(name, " ", "-")
			inUse := func() string {
				t.Helper()
				why, err := kafka.GroupInUse(t.Context(), client, group, topic.Input)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return why
			}
			if why := inUse(); why != "" {
				t.Errorf("%s: a group that nobody knows: %s", name, why)
			}
			member, err := kgo.NewClient(append(balancing,
				kgo.SeedBrokers(client.OptValue(kgo.SeedBrokers).([]string)...),
				kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic.Input),
				kgo.DisableAutoCommit())...)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, time.Minute, name+": an active group", func() bool {
				return strings.Contains(inUse(), "is active")
			})
			member.Close()
			testkit.Eventually(t, time.Minute, name+": an empty group", func() bool {
				return inUse() == ""
			})
			offsets := make(kadm.Offsets)
			offsets.AddOffset(topic.Input, 2, 0, -1)
			if err := kadm.NewClient(client).CommitAllOffsets(
				t.Context(), group, offsets,
			); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if why := inUse(); !strings.Contains(why, "has committed offset 0 of "+topic.Input+
				"[2]") {
				t.Errorf("%s: a group with a commit: %q", name, why)
			}
		}
	})
}
