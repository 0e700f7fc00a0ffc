package client

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMembersOfBothProtocolsAreSeen(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		for name, protocol := range map[string][]kgo.Opt{
			"classic":  {kgo.Balancers(kgo.CooperativeStickyBalancer())},
			"consumer": {kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())},
		} {
			t.Run(name, func(t *testing.T) {
				topic := testkit.Topic(t, brokers, "orders", 1, nil)
				group := topic + "-group"
				asking := testkit.KafkaClient(t, brokers)
				c := &Client{kafka: asking, admin: kadm.NewClient(asking)}
				// the coordinator may be new
				testkit.Eventually(t, 30*time.Second, "no member before it exists", func() bool {
					active, err := c.HasMembers(t.Context(), group)
					return !active && err == nil
				})
				member := testkit.KafkaClient(t, brokers,
					append(protocol, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic))...)
				testkit.Eventually(t, 30*time.Second, "a member that is seen", func() bool {
					active, err := c.HasMembers(t.Context(), group)
					return active && err == nil
				})
				member.Close()
				testkit.Eventually(t, 30*time.Second, "no member", func() bool {
					active, err := c.HasMembers(t.Context(), group)
					return !active && err == nil
				})
			})
		}
	})
}

func TestOldBrokersKnowNoGroupsOfTheNewProtocol(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.MaxVersions(kversion.V2_8_0()))
	asking := testkit.KafkaClient(t, brokers)
	c := &Client{kafka: asking, admin: kadm.NewClient(asking)}
	if active, err := c.HasMembers(t.Context(), "nobody"); active || err != nil {
		t.Errorf("got %t, %v", active, err)
	}
}
