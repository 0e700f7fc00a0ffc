package brokers

import (
	"context"
	"errors"

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

// HasMembers reports whether a group in a state has members.
func HasMembers(state string) bool { return state != "" && state != "Empty" && state != "Dead" }
