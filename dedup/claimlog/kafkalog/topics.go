package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// Topic is a topic that a group needs, as it is to be made.
type Topic struct {
	Name       string
	Partitions int
	Settings   []Setting
}

// Setting is one of a topic's settings. Without one that is not required the topic works all the
// same.
type Setting struct {
	Key, Value string
	Required   bool
}

const (
	// largestBlock is beyond what claimlog puts into a block.
	largestBlock = 1 << 20
	forEver      = "-1"
)

// Topics lists what a group needs for claims of this ttl: the log, and the registry.
func (l *Logs) Topics(group string, shards int, ttl time.Duration) []Topic {
	return []Topic{
		{l.topic(group), shards, []Setting{
			{"cleanup.policy", "delete", true},
			{"message.timestamp.type", "LogAppendTime", true},
			{"retention.ms", milliseconds(ttl + claimlog.Margin), true},
			{"retention.bytes", forEver, true},
			{"segment.ms", milliseconds(segmentTime(ttl)), false},
			{"unclean.leader.election.enable", "false", false},
		}},
		{l.registryTopic(group), 1, []Setting{
			{"cleanup.policy", "delete", true},
			{"retention.ms", forEver, true}, {"retention.bytes", forEver, true},
			{"unclean.leader.election.enable", "false", false},
		}},
	}
}

// segmentTime has what has ended deleted soon, a segment at a time, with few segments.
func segmentTime(ttl time.Duration) time.Duration {
	return min(max(ttl/8, 10*time.Minute), 24*time.Hour)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Check refuses topics that cannot hold claims of this ttl. It changes nothing, and reads no claim.
func (l *Logs) Check(ctx context.Context, group string, ttl time.Duration) error {
	log, err := l.Open(ctx, group)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := claimlog.LongEnough(log, ttl); err != nil {
		return fmt.Errorf("topic %s: %w; %s", l.topic(group), err, setupRemedy)
	}
	_, err = l.Registry(group).Decided(ctx, "log")
	return err
}

// errSetting is wrapped by what is wrong with the topic, until somebody changes it.
var errSetting = errors.New("this topic cannot be a log of claims")

// describe reads what the topic is, and refuses one that cannot be a log of claims, or is another
// one than before.
func (t *topicLog) describe(ctx context.Context) error {
	detail, err := topicDetail(ctx, t.admin, t.topic)
	if err != nil {
		return err
	}
	switch {
	case detail.ID == (kadm.TopicID{}):
		return fmt.Errorf("%w: the brokers tell no topic IDs, without which a log that was deleted "+
			"and made again looks like the old one: upgrade them to 2.8 or later, or use another "+
			"store", errSetting)
	case t.id == (kadm.TopicID{}):
		t.id, t.partitions = detail.ID, len(detail.Partitions)
	case t.id != detail.ID:
		return errRecreated(t.topic)
	}
	values, err := settings(ctx, t.admin, t.topic)
	if err != nil {
		return err
	}
	for _, must := range []struct{ key, value, why string }{
		{"cleanup.policy", "delete", "compaction would leave holes in the order of claims"},
		{"message.timestamp.type", "LogAppendTime",
			"the end of a claim must not depend on the claimant's clock"},
		{"retention.bytes", forEver, "claims would be forgotten before their ttl"},
	} {
		if got := values[must.key]; got != must.value {
			return fmt.Errorf("%w: %s is %s and must be %s: %s", errSetting, must.key, got,
				must.value, must.why)
		}
	}
	if limit, err := strconv.Atoi(values["max.message.bytes"]); err == nil && limit < largestBlock {
		return fmt.Errorf("%w: max.message.bytes is %d and must be at least %d, for a block of "+
			"claims", errSetting, limit, largestBlock)
	}
	retention, err := strconv.ParseInt(values["retention.ms"], 10, 64)
	if err != nil {
		return fmt.Errorf("retention.ms: %w", err)
	}
	t.retention.Store(max(0, retention) * int64(time.Millisecond))
	return nil
}

func errRecreated(topic string) error {
	return fmt.Errorf("%w: topic %s was deleted and made again", claimlog.ErrCut, topic)
}
