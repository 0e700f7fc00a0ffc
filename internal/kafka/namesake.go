package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Namesakes are the hosts of the members of a consumer group that have one of the client IDs.
func Namesakes(
	ctx context.Context, client *kgo.Client, group string, clientIDs []string,
) (hosts []string, err error) {
	admin := kadm.NewClient(client)
	note := func(clientID, host string) {
		if slices.Contains(clientIDs, clientID) && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	classic, err := admin.DescribeGroups(ctx, group)
	if err == nil && classic[group].Err == nil {
		for _, m := range classic[group].Members {
			note(m.ClientID, m.ClientHost)
		}
	}
	// A group of the other protocol is no group to the first question, and the other way round.
	served, errServed := admin.DescribeConsumerGroups(ctx, group)
	if errServed == nil && served[group].Err == nil {
		for _, m := range served[group].Members {
			note(m.ClientID, m.ClientHost)
		}
	}
	if err != nil && errServed != nil {
		return nil, fmt.Errorf("describe consumer group %s: %w", group, errors.Join(err, errServed))
	}
	return hosts, nil
}
