package client

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Width tells which topics need as many partitions as the input has, beside the fence topic.
type Width struct {
	Parallel string // output that has the partition numbers of the input; empty: none
	// Widen adds partitions to topics that are kdedup's own, where they are too few. Nil: nobody
	// does.
	Widen func(ctx context.Context) error
}

// metadataAge is how long it takes at the most until a partition that was added is seen.
const metadataAge = 30 * time.Second

// Narrow implements consumer.Client. What the brokers do not tell is no reason to wait: a topic
// that is missing, or may not be seen, fails the session with its own error.
func (c *Client) Narrow(ctx context.Context, partitions []int32) (map[int32]string, error) {
	narrow, err := c.narrow(ctx, partitions)
	if err != nil || len(narrow) == 0 || c.opts.Width.Widen == nil {
		return narrow, err
	}
	if err := c.opts.Width.Widen(ctx); err != nil {
		for p, reason := range narrow {
			narrow[p] = fmt.Sprintf("%s: %v", reason, err)
		}
		return narrow, nil
	}
	return c.narrow(ctx, partitions)
}

func (c *Client) narrow(ctx context.Context, partitions []int32) (map[int32]string, error) {
	narrow := make(map[int32]string)
	err := c.addNarrow(ctx, c.kafka, c.opts.FenceTopic, partitions, narrow,
		"kdedup setup -c FILE adds it")
	if err == nil && c.opts.Width.Parallel != "" {
		err = c.addNarrow(ctx, c.output, c.opts.Width.Parallel, partitions, narrow,
			"records keep their partition number: add partitions to it, or set partitioner: by_key")
	}
	return narrow, err
}

// addNarrow also counts partitions that the client has not heard of: it would refuse their records.
func (c *Client) addNarrow(
	ctx context.Context, client *kgo.Client, topic string, partitions []int32,
	narrow map[int32]string, remedy string,
) error {
	details, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	there := details[topic].Partitions
	if details[topic].Err != nil || len(there) == 0 {
		return nil
	}
	because := func(p int32, reason string) {
		if earlier, some := narrow[p]; some {
			reason = earlier + "; " + reason
		}
		narrow[p] = reason
	}
	first, _, _ := client.PartitionLeader(topic, 0)
	for _, p := range partitions {
		leader, _, _ := client.PartitionLeader(topic, p)
		_, exists := there[p]
		switch {
		case !exists:
			because(p, fmt.Sprintf("topic %s has no partition %d, as %s has; %s", topic, p,
				c.opts.Input, remedy))
		case first >= 0 && leader < 0:
			client.ForceMetadataRefresh()
			because(p, fmt.Sprintf("partition %d of topic %s was added just now", p, topic))
		}
	}
	return nil
}
