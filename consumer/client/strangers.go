package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/brokers"
)

// checkMembers looks for those that read the input. kdedup's members are known by their client IDs.
func (g Group) checkMembers(ctx context.Context, admin *kadm.Client) error {
	strangers, err := g.strangers(ctx, admin)
	if err != nil {
		return fmt.Errorf("describe consumer group %s: %w", g.Name, err)
	}
	if len(strangers) == 0 {
		return nil
	}
	return fmt.Errorf("consumer group %s has members that are not kdedup's, and read %s: %s; "+
		"what they handle is not forwarded: "+
		"stop them, or give this entry a consumer_group of its own", g.Name, g.Input,
		some(strangers))
}

func (g Group) strangers(ctx context.Context, admin *kadm.Client) (found []string, err error) {
	described, err := admin.DescribeGroups(ctx, g.Name)
	if err != nil {
		return nil, err
	}
	for _, m := range described[g.Name].Members {
		joined, known := m.Join.AsConsumer()
		found = g.addStranger(found, m.ClientID, m.ClientHost, !known ||
			slices.Contains(joined.Topics, g.Grouped()))
	}
	// Brokers describe groups of the new protocol (KIP-848) by another request, which older ones do
	// not know.
	if newer, err := admin.DescribeConsumerGroups(ctx, g.Name); err == nil && len(found) == 0 {
		for _, m := range newer[g.Name].Members {
			reads := slices.Contains(m.SubscribedTopics, g.Grouped()) ||
				m.SubscribedTopicRegex != nil && *m.SubscribedTopicRegex != ""
			found = g.addStranger(found, m.ClientID, m.ClientHost, reads)
		}
	}
	return found, nil
}

func (g Group) addStranger(found []string, clientID, host string, reads bool) []string {
	if !reads || g.lane(clientID) {
		return found
	}
	return append(found, fmt.Sprintf("%q at %s", clientID, strings.TrimPrefix(host, "/")))
}

// lane reports whether a client ID is that of a lane: <group>-<instance>-<lane>.
func (g Group) lane(clientID string) bool {
	rest, ours := strings.CutPrefix(clientID, g.Name+"-")
	_, lane, numbered := cutLast(rest, "-")
	_, err := strconv.Atoi(lane)
	return ours && numbered && err == nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	at := strings.LastIndex(s, separator)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(separator):], true
}

// hasMembers reports whether a consumer group has members.
func hasMembers(ctx context.Context, admin *kadm.Client, group string) (bool, error) {
	state, err := brokers.GroupState(ctx, admin, group)
	return state != "", err
}
