package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
)

// CheckCollisions refuses topics that setup would make, and of which the brokers make only one: the
// names differ in nothing but . and _, which are the same in the names of their metrics. One that
// collides with a topic that exists the brokers refuse themselves, when they are asked. The topics
// beside those of the pipelines are on the cluster of the inputs.
func CheckCollisions(
	ctx context.Context, clusters Clusters, pipelines []config.Topic, beside []string,
) error {
	here, there := slices.Clone(beside), []string(nil)
	for _, t := range pipelines {
		for _, topic := range names(t)[1:] { // setup makes no input
			if clusters.Apart() && forwards(t, topic) {
				there = append(there, topic)
			} else {
				here = append(here, topic)
			}
		}
	}
	return errors.Join(checkCollisions(ctx, clusters.Input, here),
		checkCollisions(ctx, clusters.Output, there))
}

func checkCollisions(ctx context.Context, client *kgo.Client, topics []string) error {
	if len(topics) == 0 { // which would be all topics
		return nil
	}
	details, err := kadm.NewClient(client).ListTopics(ctx, topics...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	there := layout{details: details}
	missing := slices.DeleteFunc(slices.Clone(topics), there.exists)
	slices.Sort(missing)
	first := make(map[string]string)
	var problems []error
	for _, topic := range slices.Compact(missing) {
		unified := strings.ReplaceAll(topic, ".", "_")
		if other, taken := first[unified]; taken {
			problems = append(problems, fmt.Errorf("of the topics %s and %s the brokers make only "+
				"one, because . and _ are the same to them: rename one of the two", other, topic))
			continue
		}
		first[unified] = topic
	}
	return errors.Join(problems...)
}
