package keepers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/internal/brokers"
)

// GroupSuffix is behind the name of a consumer group in that of its keepers' group.
const GroupSuffix = ".keepers"

// Members tells who shares the shards of a group: the members of a consumer group of the brokers,
// of which nobody consumes anything. Each says in its metadata where it answers, and the group's
// leader assigns to all the list of all.
type Members struct {
	Connection []kgo.Opt // at least kgo.SeedBrokers
	// Topic is one that exists; a group needs one. Nothing of it is read.
	Topic func(group string) string
}

const (
	heartbeat = time.Second
	// session is how long a process that has died is still a member; brokers allow no less.
	session = 6 * time.Second
)

// join returns when ctx ends, or the brokers refuse the process.
func (m *Members) join(
	ctx context.Context, group string, self claimlog.Member, changed func([]claimlog.Member),
) error {
	b := &balancer{self: self, changed: changed}
	client, err := kgo.NewClient(append(m.Connection[:len(m.Connection):len(m.Connection)],
		kgo.ConsumerGroup(group+GroupSuffix), kgo.ConsumeTopics(m.Topic(group)),
		kgo.Balancers(b), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(heartbeat), kgo.SessionTimeout(session),
		kgo.RebalanceTimeout(session),
	)...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer brokers.Leave(client)
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("join the group %s: %w", group+GroupSuffix, err)
		}
	}
}

// balancer is a kgo.GroupBalancer that assigns to everybody who there is.
type balancer struct {
	self    claimlog.Member
	changed func([]claimlog.Member)
}

var _ kgo.GroupBalancer = (*balancer)(nil)

func (*balancer) ProtocolName() string { return "kdedup-keepers-1" }
func (*balancer) IsCooperative() bool  { return false }

func (b *balancer) JoinGroupMetadata(topics []string, _ map[string][]int32, _ int32) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData = topics, encode(b.self)
	return m.AppendTo(nil)
}

// encode writes what always can be.
func encode(what any) []byte {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	return text
}

// MemberBalancer implements kgo.GroupBalancer.
func (*balancer) MemberBalancer(
	members []kmsg.JoinGroupResponseMember,
) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	topics := make(map[string]struct{})
	var p plan
	for i := range members {
		m := kmsg.NewConsumerMemberMetadata()
		if err := m.ReadFrom(members[i].ProtocolMetadata); err != nil {
			return nil, nil, fmt.Errorf("the metadata of a keeper: %w", err)
		}
		for _, topic := range m.Topics {
			topics[topic] = struct{}{}
		}
		var one claimlog.Member
		if err := json.Unmarshal(m.UserData, &one); err != nil {
			return nil, nil, fmt.Errorf("the metadata of a keeper: %w", err)
		}
		p.ids, p.members = append(p.ids, members[i].MemberID), append(p.members, one)
	}
	return &p, topics, nil
}

// plan assigns the list of the members to each.
type plan struct {
	ids     []string
	members []claimlog.Member
}

// Balance implements kgo.GroupMemberBalancer.
func (p *plan) Balance(map[string]int32) kgo.IntoSyncAssignment { return p }

// IntoSyncAssignment implements kgo.IntoSyncAssignment.
func (p *plan) IntoSyncAssignment() []kmsg.SyncGroupRequestGroupAssignment {
	a := kmsg.NewConsumerMemberAssignment()
	a.UserData = encode(p.members)
	data := a.AppendTo(nil)
	var all []kmsg.SyncGroupRequestGroupAssignment
	for _, id := range p.ids {
		one := kmsg.NewSyncGroupRequestGroupAssignment()
		one.MemberID, one.MemberAssignment = id, data
		all = append(all, one)
	}
	return all
}

var errNoMembers = errors.New("the assignment of the keepers' group names no members: do others use " +
	"this consumer group?")

// ParseSyncAssignment takes note of the members. There is nothing to consume.
func (b *balancer) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(assignment); err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoMembers, err)
	}
	var members []claimlog.Member
	if err := json.Unmarshal(a.UserData, &members); err != nil || len(members) == 0 {
		return nil, fmt.Errorf("%w (%w)", errNoMembers, err)
	}
	b.changed(members)
	return nil, nil
}
