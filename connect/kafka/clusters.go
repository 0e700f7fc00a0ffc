package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
)

// Clusters are clients of the brokers that have the topics of the pipelines. Mostly they are one.
type Clusters struct {
	Input  *kgo.Client // inputs
	Output *kgo.Client // what is forwarded: clean topics, duplicates and dead letters
	// The consumer group and the fence topic of a pipeline with exactly_once are on that of the
	// output, whose transactions they belong to, and those of the others on that of the input.
}

// OneCluster has all topics.
func OneCluster(client *kgo.Client) Clusters { return Clusters{client, client} }

// Apart reports whether what is forwarded goes to another cluster.
func (c Clusters) Apart() bool { return c.Input != c.Output }

// Close closes the clients that there are.
func (c Clusters) Close() {
	if c.Output != nil && c.Apart() {
		c.Output.Close()
	}
	if c.Input != nil {
		c.Input.Close()
	}
}

// Ping returns when a broker of each cluster has answered. The other cluster is asked second.
func (c Clusters) Ping(ctx context.Context) error {
	if err := pingAt(ctx, c.Input, inputPlace); err != nil || !c.Apart() {
		return err
	}
	return pingAt(ctx, c.Output, outputPlace)
}

// PingOf is Ping for the cluster alone that has a topic of the pipeline.
func (c Clusters) PingOf(ctx context.Context, t config.Topic, topic string) error {
	if c.Apart() && forwards(t, topic) {
		return pingAt(ctx, c.Output, outputPlace)
	}
	return pingAt(ctx, c.Input, inputPlace)
}

// forwards reports whether a topic of the pipeline is on the cluster of what it forwards.
func forwards(t config.Topic, topic string) bool {
	if topic == t.FenceTopic {
		return t.Delivery == config.DeliveryExactlyOnce
	}
	return topic != "" &&
		(topic == t.Output || topic == t.DuplicatesTopic || topic == t.DeadLetterTopic)
}

// OfGroup is the client of the brokers that have the consumer group of a pipeline.
func (c Clusters) OfGroup(t config.Topic) *kgo.Client { return c.Of(t, t.FenceTopic) }

// SplitsGroup reports whether the group of a pipeline is on another cluster than its input.
func (c Clusters) SplitsGroup(t config.Topic) bool { return c.OfGroup(t) != c.Input }

// Of is the client of the brokers that have a topic of the pipeline.
func (c Clusters) Of(t config.Topic, topic string) *kgo.Client {
	if forwards(t, topic) {
		return c.Output
	}
	return c.Input
}

// place tells where a topic is, for those that may look on the wrong cluster.
func (c Clusters) place(t config.Topic, topic string) string {
	if c.Apart() && forwards(t, topic) {
		return " on the cluster of " + outputPlace
	}
	return ""
}

// each asks the brokers of each cluster about those of the topics that they have. An error of the
// other cluster says so.
func (c Clusters) each(
	t config.Topic, topics []string, ask func(client *kgo.Client, topics []string) error,
) error {
	if !c.Apart() {
		return ask(c.Input, topics)
	}
	var here, there []string
	for _, topic := range topics {
		if forwards(t, topic) {
			there = append(there, topic)
		} else {
			here = append(here, topic)
		}
	}
	if len(here) > 0 { // no topics would be all topics
		if err := ask(c.Input, here); err != nil {
			return err
		}
	}
	if len(there) > 0 {
		if err := ask(c.Output, there); err != nil {
			return fmt.Errorf("%s: %w", outputPlace, err)
		}
	}
	return nil
}

func (c Clusters) details(
	ctx context.Context, t config.Topic, topics []string,
) (kadm.TopicDetails, error) {
	all := make(kadm.TopicDetails)
	err := c.each(t, topics, func(client *kgo.Client, topics []string) error {
		details, err := kadm.NewClient(client).ListTopics(ctx, topics...)
		maps.Copy(all, details)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	return all, nil
}

func (c Clusters) settings(
	ctx context.Context, t config.Topic, topics []string,
) (map[string]map[string]setting, error) {
	all := make(map[string]map[string]setting)
	var untold []error
	err := c.each(t, topics, func(client *kgo.Client, topics []string) error {
		values, cannot, err := orUntold(settings(ctx, client, topics...))
		maps.Copy(all, values)
		untold = append(untold, cannot)
		return err
	})
	if err != nil {
		return all, err
	}
	return all, errors.Join(untold...)
}

// allowedOn asks what is allowed on each of the topics.
func (c Clusters) allowedOn(
	ctx context.Context, t config.Topic, topics []string,
) (all []kmsg.MetadataResponseTopic, err error) {
	err = c.each(t, topics, func(client *kgo.Client, topics []string) error {
		allowed, err := allowedOn(ctx, client, topics)
		all = append(all, allowed...)
		return err
	})
	return all, err
}
