package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Target is what a topic takes from a command that writes to it.
type Target struct {
	Partitions int
	MaxBytes   int  // max.message.bytes; 0: not known
	Compacted  bool // no record without a key
	// Retention is how old a record may be before the brokers delete it; 0: any age, or they give
	// it a time of their own.
	Retention time.Duration
}

// TargetOf asks the brokers. Exists is false for a topic that does not.
func TargetOf(
	ctx context.Context, client *kgo.Client, topic string,
) (target Target, exists bool, err error) {
	admin := kadm.NewClient(client)
	details, err := admin.ListTopics(ctx, topic)
	if err == nil {
		err = details[topic].Err
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return Target{}, false, nil
	}
	if err != nil {
		return Target{}, false, fmt.Errorf("describe topic %s: %w", topic, err)
	}
	keys, _, err := orUntold(topicSettings(ctx, client, topic))
	if err != nil {
		return Target{}, true, err
	}
	target = Target{Partitions: len(details[topic].Partitions), MaxBytes: largestBatch(keys),
		Compacted: strings.Contains(keys["cleanup.policy"].value, "compact")}
	deletes := strings.Contains(keys["cleanup.policy"].value, "delete") &&
		keys["message.timestamp.type"].value != "LogAppendTime"
	ms, err := strconv.ParseInt(keys["retention.ms"].value, 10, 64)
	if err == nil && deletes && ms > 0 && ms < int64(forever/time.Millisecond) {
		target.Retention = time.Duration(ms) * time.Millisecond
	}
	return target, true, nil
}

// forever is about the longest time that a Duration holds.
const forever = 290 * 365 * 24 * time.Hour
