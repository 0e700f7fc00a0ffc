package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config/editdistance"
)

// TopicNames lists the topics that the brokers show, without their own, sorted.
func TopicNames(ctx context.Context, client *kgo.Client) ([]string, error) {
	details, err := kadm.NewClient(client).ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	names := details.Names()
	slices.Sort(names)
	return names, nil
}

// Near are the names that somebody may mean who wrote another one, the nearest first.
func Near(name string, names []string) (near []string) {
	far := make(map[string]int)
	name = strings.ToLower(name)
	for _, other := range names {
		lower := strings.ToLower(other)
		distance := editdistance.Between(name, lower)
		contained := len(name) >= 3 && strings.Contains(lower, name) ||
			len(lower) >= 3 && strings.Contains(name, lower)
		if distance <= 1+len(name)/4 || contained {
			near, far[other] = append(near, other), distance
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(far[a], far[b]) })
	return near
}

// Keeping is how long a topic keeps its records.
type Keeping struct {
	Ever bool          // no age ends a record
	For  time.Duration // else
}

// KeepingOf needs the right to see the topic's settings.
func KeepingOf(ctx context.Context, client *kgo.Client, topic string) (k Keeping, err error) {
	values, err := topicSettings(ctx, client, topic)
	if err != nil {
		return k, err
	}
	policy := values["cleanup.policy"].value
	text := values["retention.ms"].value
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return k, fmt.Errorf("topic %s: retention.ms is %q", topic, text)
	}
	if k.Ever = ms < 0 || policy == "compact"; !k.Ever {
		k.For = time.Duration(min(ms, int64(1<<62)/int64(time.Millisecond))) * time.Millisecond
	}
	return k, nil
}
