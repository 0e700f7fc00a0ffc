package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/pause"
)

// MakeTopic returns when every partition has a leader: a broker may know a topic later than the
// controller that created it.
func MakeTopic(
	ctx context.Context, admin *kadm.Client, topic string, partitions int,
	config map[string]*string,
) error {
	if _, err := admin.CreateTopic(ctx, int32(partitions), -1, config, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	for {
		details, err := admin.ListTopics(ctx, topic)
		if err == nil && led(details[topic]) == partitions {
			return nil
		}
		if !pause.For(ctx, askVisible) {
			return fmt.Errorf("create topic %s: wait for its leaders: %w", topic,
				context.Cause(ctx))
		}
	}
}

const askVisible = 100 * time.Millisecond

func led(topic kadm.TopicDetail) (n int) {
	for _, p := range topic.Partitions {
		if p.Err == nil && p.Leader >= 0 {
			n++
		}
	}
	return n
}
