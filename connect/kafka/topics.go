package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
)

// layout is what the brokers say about the topics of one pipeline.
type layout struct {
	clusters Clusters
	topic    config.Topic
	details  kadm.TopicDetails
}

// describe asks about the pipeline's topics.
func describe(ctx context.Context, clusters Clusters, t config.Topic) (layout, error) {
	details, err := clusters.details(ctx, t, names(t))
	return layout{clusters, t, details}, err
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

// replicas of a topic's partitions, the fewest; -1 if it is not known.
func (l layout) replicas(topic string) int {
	fewest := -1
	for _, p := range l.details[topic].Partitions {
		if n := len(p.Replicas); fewest < 0 || n < fewest {
			fewest = n
		}
	}
	return fewest
}

const setupRemedy = "run: kdedup setup -c FILE"

// Check returns every reason why the pipeline cannot run on the topics as they are.
func Check(ctx context.Context, clusters Clusters, t config.Topic) []error {
	l, err := describe(ctx, clusters, t)
	if err != nil {
		return []error{err}
	}
	var problems []error
	for _, name := range names(t) {
		if err := l.details[name].Err; err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			problems = append(problems, fmt.Errorf("topic %s%s: %w", name,
				clusters.place(t, name), err))
		} else if !l.exists(name) {
			problems = append(problems, l.missing(name))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return append(problems, checkFence(ctx, clusters.Of(t, t.FenceTopic), t.FenceTopic)...)
}

func (l layout) missing(name string) error {
	if name == l.topic.Input {
		return fmt.Errorf("input topic %s does not exist; create it first: its number of "+
			"partitions is yours to choose", name)
	}
	return fmt.Errorf("topic %s does not exist%s; %s", name, l.clusters.place(l.topic, name),
		setupRemedy)
}

// checkFence refuses a fence topic from which fences are deleted. One that cannot be compacted
// keeps all of them: the reader looks at its end only. Of one that cannot be asked, Compare tells.
func checkFence(ctx context.Context, client *kgo.Client, fence string) []error {
	v, untold, err := orUntold(topicSettings(ctx, client, fence))
	switch {
	case err != nil:
		return []error{err}
	case untold != nil:
		return nil
	}
	if v["cleanup.policy"].value == "compact" || keepsAll(v) {
		return nil
	}
	return []error{fmt.Errorf("fence topic %s has cleanup.policy=%s, retention.ms=%s and "+
		"retention.bytes=%s: deleted fences make a rewind forward twice; set "+
		"cleanup.policy=compact or, where it cannot be compacted, retention.ms=-1 and "+
		"retention.bytes=-1", fence, v["cleanup.policy"].value, v["retention.ms"].value,
		v["retention.bytes"].value)}
}

// keepsAll reports whether nothing is ever deleted from a topic.
func keepsAll(topic map[string]setting) bool {
	bytes := topic["retention.bytes"]
	return topic["retention.ms"].value == "-1" && (bytes.value == "-1" || !bytes.known())
}

// Limits are what topics admit.
type Limits struct {
	MaxBytes  map[string]int  // by topic: max.message.bytes, or segment.bytes if that is less
	Compacted map[string]bool // topics that take no record without a key
}

// LimitsOf reads those of each topic that kdedup writes for the pipeline.
func LimitsOf(ctx context.Context, clusters Clusters, t config.Topic) (Limits, error) {
	values, _, err := orUntold(clusters.settings(ctx, t, slices.DeleteFunc(names(t)[1:],
		func(name string) bool { return name == t.DeadLetterTopic })))
	if err != nil {
		return Limits{}, err
	}
	if t.DeadLetterTopic != "" {
		// Without it only those wait that must go there.
		if dead, err := clusters.settings(ctx, t, []string{t.DeadLetterTopic}); err == nil {
			maps.Copy(values, dead)
		}
	}
	limits := Limits{make(map[string]int), make(map[string]bool)}
	for topic, keys := range values {
		if n := largestBatch(keys); n > 0 {
			limits.MaxBytes[topic] = n
		}
		limits.Compacted[topic] = strings.Contains(keys["cleanup.policy"].value, "compact")
	}
	return limits, nil
}

// largestBatch is 0 if it is not known. A batch has to fit into a segment, too.
func largestBatch(topic map[string]setting) int {
	least := 0
	for _, key := range []string{"max.message.bytes", "segment.bytes"} {
		n, err := strconv.Atoi(topic[key].value)
		if err == nil && n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}
