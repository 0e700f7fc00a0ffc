package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/brokers"
)

// Coordinators look at the limits before they ask who the member or the producer is. So they are
// asked with the settings of a lane for one that does not exist, and nothing changes.

const nobodyElse = "kdedup-limits"

// member refuses what the coordinator does not admit of any member with the settings of a lane.
func (l *BrokerLimits) member(ctx context.Context, t config.Topic, broker int32) error {
	if t.GroupProtocol == config.ProtocolConsumer {
		return l.serverSide(ctx, t, broker)
	}
	err := joinOfNobody(ctx, l.client, t)
	switch {
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return l.session(ctx, t, broker, err)
	case errors.Is(err, kerr.InconsistentGroupProtocol) && l.others[broker][t.ConsumerGroup] == "":
		return l.strangeMembers(ctx, t, err)
	}
	return nil
}

// joinOfNobody leaves again, should the broker let it in.
func joinOfNobody(ctx context.Context, client *kgo.Client, t config.Topic) error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = t.ConsumerGroup, nobodyElse, "consumer"
	req.SessionTimeoutMillis = int32(t.SessionTimeout.Milliseconds())
	req.RebalanceTimeoutMillis = int32(coordinatorPatience.Milliseconds())
	balancer := kgo.CooperativeStickyBalancer()
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: balancer.ProtocolName(),
		Metadata: balancer.JoinGroupMetadata([]string{t.Input}, nil, -1)}}
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if answer.ErrorCode == 0 {
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = t.ConsumerGroup, answer.MemberID
		leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: answer.MemberID}}
		_, err = leave.RequestWith(ctx, client)
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

// strangeMembers explains why no lane can join beside the members that a group has.
func (l *BrokerLimits) strangeMembers(ctx context.Context, t config.Topic, refusal error) error {
	kind := ""
	described, err := kadm.NewClient(l.client).DescribeGroups(ctx, t.ConsumerGroup)
	if g := described[t.ConsumerGroup]; err == nil && g.ProtocolType != "" {
		kind = fmt.Sprintf(", of protocol type %s, which assign partitions by %q", g.ProtocolType,
			g.Protocol)
	}
	return fmt.Errorf("consumer_group: %s has members%s: no lane can join beside them (%w); stop "+
		"them, or name a group of this entry's own", t.ConsumerGroup, kind, refusal)
}

// serverSide asks with a heartbeat of nobody (KIP-848).
func (l *BrokerLimits) serverSide(ctx context.Context, t config.Topic, broker int32) error {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = t.ConsumerGroup, nobodyElse, 1
	req.ServerAssignor = kmsg.StringPtr(serverAssignor)
	answer, err := req.RequestWith(ctx, l.client)
	if err != nil {
		return nil // a broker without this protocol, where the client takes the other one
	}
	switch err := kerr.ErrorForCode(answer.ErrorCode); {
	case errors.Is(err, kerr.UnsupportedAssignor):
		return fmt.Errorf("group_protocol: consumer needs the assignor %s among "+
			"group.consumer.assignors of broker %d%s: %w", serverAssignor, broker,
			l.is(ctx, broker, "group.consumer.assignors"), err)
	case errors.Is(err, kerr.UnsupportedVersion):
		return fmt.Errorf("group_protocol: consumer needs consumer among "+
			"group.coordinator.rebalance.protocols of broker %d%s, and its feature group.version: "+
			"%w", broker, l.is(ctx, broker, "group.coordinator.rebalance.protocols"), err)
	}
	return nil
}

// serverAssignor is the one that lanes ask for.
const serverAssignor = "range"

// is tells a setting's value, if it is known.
func (l *BrokerLimits) is(ctx context.Context, broker int32, key string) string {
	value := l.setting(ctx, broker, key)
	if value == "" {
		return ""
	}
	return " (" + value + ")"
}

// otherType refuses a name that belongs to a share group (KIP-932), or to a group of Kafka Streams
// (KIP-1071): no consumer joins those. Of the latter one without members gives its name away to a
// member of the classic protocol.
func (l *BrokerLimits) otherType(ctx context.Context, t config.Topic, broker int32) error {
	if _, asked := l.others[broker]; !asked {
		l.others[broker] = otherGroups(ctx, l.client, broker)
	}
	kind := l.others[broker][t.ConsumerGroup]
	if kind == "" || kind == emptyStreams && t.GroupProtocol != config.ProtocolConsumer {
		return nil
	}
	return fmt.Errorf("consumer_group: %s is a %s group, which no consumer can join; name another "+
		"one, or delete that group", t.ConsumerGroup, kind)
}

const (
	shareGroup   = "share"
	streams      = "streams"
	emptyStreams = "streams (empty)"
)

// otherGroups lists those that a broker coordinates, with their types. Brokers before 3.8 have none
// and know no types.
func otherGroups(ctx context.Context, client *kgo.Client, broker int32) map[string]string {
	types := make(map[string]string)
	req := kmsg.NewPtrListGroupsRequest()
	req.TypesFilter = []string{shareGroup, streams}
	answer, err := client.Broker(int(broker)).RetriableRequest(ctx, req)
	if err != nil {
		return types
	}
	for _, g := range answer.(*kmsg.ListGroupsResponse).Groups {
		switch {
		case g.GroupType == streams && !brokers.HasMembers(g.GroupState):
			types[g.Group] = emptyStreams
		case g.GroupType == shareGroup || g.GroupType == streams:
			types[g.Group] = g.GroupType
		}
	}
	return types
}

// errNotNobody is the answer to who names a producer that a transactional ID does not have.
var errNotNobody = errors.New("not the producer of this transactional ID")

// initOfNobody asks for a producer ID as nobody: see there. A coordinator that knows the
// transactional ID refuses it, and the lane of that name goes on. One that does not know it keeps
// the name until it expires, as after a lane's first start.
func initOfNobody(
	ctx context.Context, client *kgo.Client, member string, timeout time.Duration,
) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &member, int32(timeout.Milliseconds())
	req.ProducerID, req.ProducerEpoch = nobody, 0
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(answer.ErrorCode)
	for _, stranger := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch,
		kerr.InvalidProducerIDMapping} {
		if errors.Is(err, stranger) {
			return fmt.Errorf("%w: %w", errNotNobody, err)
		}
	}
	return err
}
