package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// Setup creates the topics of a group that are missing, and reports each step through say. They
// have the brokers' default replication. With dryRun it only says what it would do.
func Setup(
	ctx context.Context, client *kgo.Client, group string, shards int, ttl time.Duration,
	dryRun bool, say func(string),
) error {
	admin := kadm.NewClient(client)
	for _, t := range []struct {
		name       string
		partitions int
		values     map[string]string
	}{
		{Topic(group), shards, map[string]string{
			"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime",
			"retention.bytes": "-1",
			"retention.ms":    milliseconds(ttl + claimlog.Margin),
			"segment.ms":      milliseconds(segmentTime(ttl)),
		}},
		{RegistryTopic(group), 1, map[string]string{"cleanup.policy": "delete",
			"retention.ms": "-1", "retention.bytes": "-1"}},
	} {
		if err := create(ctx, admin, t.name, t.partitions, t.values, dryRun, say); err != nil {
			return err
		}
	}
	return nil
}

// segmentTime has what has ended deleted soon, a segment at a time, with few segments.
func segmentTime(ttl time.Duration) time.Duration {
	return min(max(ttl/8, 10*time.Minute), 24*time.Hour)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func create(
	ctx context.Context, admin *kadm.Client, topic string, partitions int, values map[string]string,
	dryRun bool, say func(string),
) error {
	if _, err := topicDetail(ctx, admin, topic); err == nil {
		say("topic " + topic + " exists")
		return nil
	} else if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("describe topic %s: %w", topic, err)
	}
	configs, told := make(map[string]*string), []string{fmt.Sprintf("%d partitions", partitions)}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		configs[key] = &value
		told = append(told, key+"="+value)
	}
	what := fmt.Sprintf("topic %s (%s)", topic, strings.Join(told, ", "))
	if dryRun {
		say("would create " + what)
		return nil
	}
	if _, err := admin.CreateTopic(ctx, int32(partitions), -1, configs, topic); err != nil &&
		!errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	if err := waitForLeaders(ctx, admin, topic, partitions); err != nil {
		return err
	}
	say("created " + what)
	return nil
}

// waitForLeaders returns when the brokers tell of the topic, which they learn of a little later
// than the controller.
func waitForLeaders(ctx context.Context, admin *kadm.Client, topic string, partitions int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		detail, err := topicDetail(ctx, admin, topic)
		ready := err == nil && len(detail.Partitions) == partitions
		for _, p := range detail.Partitions {
			ready = ready && p.Err == nil && p.Leader >= 0
		}
		if ready {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for topic %s: %w", topic, errors.Join(context.Cause(ctx), err))
		}
	}
}
