package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
)

// layout is what the broker says about the topics of one pipeline.
type layout struct {
	topic   config.Topic
	details kadm.TopicDetails
}

func describe(ctx context.Context, admin *kadm.Client, t config.Topic) (layout, error) {
	details, err := admin.ListTopics(ctx, names(t)...)
	if err != nil {
		return layout{}, fmt.Errorf("list topics: %w", err)
	}
	return layout{t, details}, nil
}

// TopicID returns the ID of a topic; zero on brokers without topic IDs (before 2.8).
func TopicID(ctx context.Context, client *kgo.Client, topic string) ([16]byte, error) {
	details, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err == nil {
		err = details[topic].Err
	}
	if err != nil {
		return [16]byte{}, fmt.Errorf("describe topic %s: %w", topic, err)
	}
	return details[topic].ID, nil
}

// names lists every topic of the pipeline, the input first.
func names(t config.Topic) []string {
	all := []string{t.Input, t.Output, t.FenceTopic}
	for _, optional := range []string{t.DuplicatesTopic, t.DeadLetterTopic} {
		if optional != "" {
			all = append(all, optional)
		}
	}
	return all
}

func (l layout) exists(topic string) bool {
	d, ok := l.details[topic]
	return ok && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) && len(d.Partitions) > 0
}

func (l layout) partitions(topic string) int { return len(l.details[topic].Partitions) }

const setupRemedy = "run: kdedup setup -c FILE"

// Check returns every reason why the pipeline cannot run on the topics as they are.
func Check(ctx context.Context, client *kgo.Client, t config.Topic) []error {
	admin := kadm.NewClient(client)
	l, err := describe(ctx, admin, t)
	if err != nil {
		return []error{err}
	}
	var problems []error
	for _, name := range names(t) {
		if err := l.details[name].Err; err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			problems = append(problems, fmt.Errorf("topic %s: %w", name, err))
		} else if !l.exists(name) {
			problems = append(problems, l.missing(name))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	input, output, fence := l.partitions(t.Input), l.partitions(t.Output), l.partitions(t.FenceTopic)
	if t.Partitioner == config.PartitionerPreserve && output < input {
		problems = append(problems, fmt.Errorf(
			"topic %s has %d partitions and %s has %d: records keep their partition number, so add partitions to %s or set partitioner: by_key",
			t.Output, output, t.Input, input, t.Output))
	}
	if fence < input {
		problems = append(problems, fmt.Errorf("fence topic %s has %d partitions and %s has %d; %s", t.FenceTopic, fence, t.Input, input, setupRemedy))
	}
	return append(problems, checkCompaction(ctx, admin, t.FenceTopic)...)
}

func (l layout) missing(name string) error {
	if name == l.topic.Input {
		return fmt.Errorf("input topic %s does not exist; create it first: its number of partitions is yours to choose", name)
	}
	return fmt.Errorf("topic %s does not exist; %s", name, setupRemedy)
}

func checkCompaction(ctx context.Context, admin *kadm.Client, fence string) []error {
	values, err := settings(ctx, admin, fence)
	if err != nil {
		return []error{err}
	}
	if policy := values[fence]["cleanup.policy"]; policy != "compact" {
		return []error{fmt.Errorf("fence topic %s has cleanup.policy=%s, want compact: deleted fences make a rewind forward twice", fence, policy)}
	}
	return nil
}

// settings reads the configuration of topics: topic -> key -> value.
func settings(ctx context.Context, admin *kadm.Client, topics ...string) (map[string]map[string]string, error) {
	described, err := admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, denied(fmt.Errorf("describe topics: %w", err), "topic "+strings.Join(topics, ", "), kmsg.ACLOperationDescribeConfigs)
	}
	values := make(map[string]map[string]string)
	for _, d := range described {
		if d.Err != nil {
			return nil, fmt.Errorf("describe topic %s: %w", d.Name, d.Err)
		}
		values[d.Name] = make(map[string]string)
		for _, c := range d.Configs {
			values[d.Name][c.Key] = c.MaybeValue()
		}
	}
	return values, nil
}

// Limits returns max.message.bytes of each topic that kdedup writes for the pipeline.
func Limits(ctx context.Context, client *kgo.Client, t config.Topic) (map[string]int, error) {
	values, err := settings(ctx, kadm.NewClient(client), names(t)[1:]...)
	if err != nil {
		return nil, err
	}
	limits := make(map[string]int)
	for topic, keys := range values {
		if n, err := strconv.Atoi(keys["max.message.bytes"]); err == nil {
			limits[topic] = n
		}
	}
	return limits, nil
}
