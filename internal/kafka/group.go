package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/pause"
)

// GroupInUse says why a consumer group is not one that has never worked on the topic: it has
// members, or committed offsets. It is empty for a new group. On a new cluster it waits until the
// broker has made the topic of the groups' offsets.
func GroupInUse(
	ctx context.Context, client *kgo.Client, group, topic string,
) (why string, err error) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		why, err = groupInUse(ctx, kadm.NewClient(client), group, topic)
		if err == nil || !kerr.IsRetriable(err) {
			return why, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", err
		}
	}
}

// GroupState is empty for a group without members.
func GroupState(ctx context.Context, client *kgo.Client, group string) (state string, err error) {
	err = pause.Repeat(ctx, askAgain, kerr.IsRetriable, func() error {
		state, err = groupState(ctx, kadm.NewClient(client), group)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("describe consumer group %s: %w", group, err)
	}
	return state, nil
}

const askAgain = 250 * time.Millisecond

func groupInUse(
	ctx context.Context, admin *kadm.Client, group, topic string,
) (why string, err error) {
	state, err := groupState(ctx, admin, group)
	if err != nil {
		return "", fmt.Errorf("describe consumer group %s: %w", group, err)
	}
	if state != "" {
		return fmt.Sprintf("consumer group %s is active (%s)", group, state), nil
	}
	offsets, err := admin.FetchOffsetsForTopics(ctx, group, topic)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return "", fmt.Errorf("fetch offsets of consumer group %s: %w", group, err)
	}
	for p, o := range offsets[topic] {
		if o.At >= 0 {
			return fmt.Sprintf("consumer group %s has committed offset %d of %s[%d]", group, o.At,
				topic, p), nil
		}
	}
	return "", nil
}

// groupState is empty for a group without members. Brokers describe groups of the two protocols by
// different requests; one that does not know the newer protocol has no such groups.
func groupState(ctx context.Context, admin *kadm.Client, group string) (string, error) {
	classic, err := admin.DescribeGroups(ctx, group)
	if err == nil {
		err = classic[group].Err
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return "", err
	}
	if err == nil && active(classic[group].State) {
		return classic[group].State, nil
	}
	server, err := admin.DescribeConsumerGroups(ctx, group)
	if err == nil && server[group].Err == nil && active(server[group].State) {
		return server[group].State, nil
	}
	return "", nil
}

func active(state string) bool { return state != "" && state != "Empty" && state != "Dead" }
