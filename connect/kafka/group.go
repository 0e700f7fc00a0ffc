package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/brokers"
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
		state, err = brokers.GroupState(ctx, kadm.NewClient(client), group)
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
	state, err := brokers.GroupState(ctx, admin, group)
	if err != nil {
		return "", fmt.Errorf("describe consumer group %s: %w", group, err)
	}
	if state != "" {
		return fmt.Sprintf("consumer group %s is active (%s)", group, state), nil
	}
	offsets, err := brokers.Offsets(ctx, admin, group, topic)
	if err != nil {
		return "", err
	}
	for p, o := range offsets {
		if o.At >= 0 {
			return fmt.Sprintf("consumer group %s has committed offset %d of %s[%d]", group, o.At,
				topic, p), nil
		}
	}
	return "", nil
}
