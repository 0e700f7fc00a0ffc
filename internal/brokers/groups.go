package brokers

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// GroupState is that of a consumer group of either protocol, and empty for one without members.
//
// It needs Describe on the group and nothing else. To describe a group of the newer protocol
// (KIP-848) takes Describe on all topics that its members read as well, and the one who asks may
// have that of none. So the list is asked: it has groups of both protocols, with their states, and
// leaves out those that one may not describe. Whether that is so, the older request tells, which
// does not find groups of the newer protocol, and is all that old brokers answer with a state.
func GroupState(ctx context.Context, admin *kadm.Client, group string) (string, error) {
	described, err := admin.DescribeGroups(ctx, group)
	if err == nil {
		err = described[group].Err
	}
	switch {
	case err != nil && !errors.Is(err, kerr.GroupIDNotFound):
		return "", err
	case err == nil && HasMembers(described[group].State):
		return described[group].State, nil
	}
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return "", err
	}
	if state := listed[group].State; HasMembers(state) {
		return state, nil
	}
	return "", nil
}

// Offsets are those that a consumer group has committed on a topic, by partition. A group that is
// yet to come has none: brokers that serve the newest OffsetFetch say that there is no such group.
func Offsets(
	ctx context.Context, admin *kadm.Client, group, topic string,
) (map[int32]kadm.OffsetResponse, error) {
	fetched, err := admin.FetchOffsetsForTopics(ctx, group, topic)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("fetch offsets of consumer group %s: %w", group, err)
	}
	return fetched[topic], nil
}

// HasMembers reports whether a group in a state has members.
func HasMembers(state string) bool { return state != "" && state != "Empty" && state != "Dead" }
