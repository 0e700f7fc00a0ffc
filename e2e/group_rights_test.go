package e2e_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// Whoever has Describe on a group, and on no topic, is told whether it has members, of either
// protocol. Without that right nobody is told that it has none.
func TestDescribeOnAGroupTellsWhetherItHasMembers(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	servers.Need(t)
	const secret = "secret-of-groups"
	broker := guarded(t, secret)
	asks := testkit.KafkaClient(t, []string{broker.kafka.Listener(plainListener).Listen},
		kgo.SASL(plain.Auth{User: "kdedup", Pass: secret}.AsMechanism()))
	addrs := []string{broker.kafka.Addr()}
	topic := testkit.Topic(t, addrs, "orders", 1, nil)
	for name, protocol := range map[string][]kgo.Opt{
		"classic":  {kgo.Balancers(kgo.CooperativeStickyBalancer())},
		"consumer": {kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())},
	} {
		group := fmt.Sprintf("%s-%s", topic, name)
		member := testkit.KafkaClient(t, addrs,
			append(protocol, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic))...)
		if state, err := kafka.GroupState(t.Context(), asks, group); !errors.Is(err,
			kerr.GroupAuthorizationFailed) {
			t.Errorf("%s: without the right the group is %q, %v", name, state, err)
		}
		broker.allow(t, acl{principal: "User:kdedup", operation: "Describe", kind: "--group",
			name: group})
		testkit.Eventually(t, time.Minute, name+": members that are seen", func() bool {
			state, err := kafka.GroupState(t.Context(), asks, group)
			return err == nil && state != ""
		})
		member.Close()
		testkit.Eventually(t, time.Minute, name+": a group without members", func() bool {
			state, err := kafka.GroupState(t.Context(), asks, group)
			return err == nil && state == ""
		})
	}
}
