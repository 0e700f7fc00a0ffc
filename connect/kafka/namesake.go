package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Namesakes are the hosts of the members of consumer groups, by group, that have one of the client
// IDs which are told for it. What a broker does not answer is left out.
func Namesakes(
	ctx context.Context, client *kgo.Client, clientIDs map[string][]string,
) (hosts map[string][]string, err error) {
	hosts = make(map[string][]string)
	note := func(group, clientID, host string) {
		if slices.Contains(clientIDs[group], clientID) && !slices.Contains(hosts[group], host) {
			hosts[group] = append(hosts[group], host)
		}
	}
	admin, groups := kadm.NewClient(client), slices.Collect(maps.Keys(clientIDs))
	classic, err := admin.DescribeGroups(ctx, groups...)
	for name, group := range classic {
		for _, m := range group.Members {
			note(name, m.ClientID, m.ClientHost)
		}
	}
	// A group of the other protocol is no group to the first question, and the other way round.
	served, errServed := admin.DescribeConsumerGroups(ctx, groups...)
	for name, group := range served {
		for _, m := range group.Members {
			note(name, m.ClientID, m.ClientHost)
		}
	}
	if err != nil && errServed != nil {
		err = fmt.Errorf("describe consumer groups: %w", errors.Join(err, errServed))
		return hosts, err
	}
	return hosts, nil
}
