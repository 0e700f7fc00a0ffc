package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/brokers"
	"github.com/kdedup/kdedup/internal/pause"
)

// setting is one of a topic's configuration.
type setting struct {
	value string
	own   bool // it is set for the topic, and not the brokers' default
}

// known reports whether the brokers have such a setting.
func (s setting) known() bool { return s != setting{} }

// ErrUntold says that a topic exists whose settings cannot be asked for. A proxy that renames
// topics may know them in Metadata and not in DescribeConfigs; some answer no DescribeConfigs.
var ErrUntold = errors.New("its settings cannot be asked for")

// untoldPatience is how long a broker may know less of a new topic than another one.
const untoldPatience = time.Second

// settings reads the configuration of topics: topic -> key -> setting. With ErrUntold it has those
// that were told.
func settings(
	ctx context.Context, client *kgo.Client, topics ...string,
) (values map[string]map[string]setting, err error) {
	patience, cancel := context.WithTimeout(ctx, untoldPatience)
	defer cancel()
	untold := func(err error) bool { return errors.Is(err, ErrUntold) }
	_ = pause.Repeat(patience, askAgain, untold, func() error {
		values, err = settingsNow(ctx, client, topics)
		return err
	})
	return values, err
}

func settingsNow(
	ctx context.Context, client *kgo.Client, topics []string,
) (map[string]map[string]setting, error) {
	admin := kadm.NewClient(client)
	described, err := admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil && (brokers.Unsupported(err) ||
		brokers.Unanswered(ctx, client, kmsg.DescribeConfigs)) {
		return nil, fmt.Errorf("topic %s: %w: %w", strings.Join(topics, ", "), ErrUntold, err)
	}
	if err != nil {
		return nil, denied(fmt.Errorf("describe topics: %w", err),
			"topic "+strings.Join(topics, ", "), kmsg.ACLOperationDescribeConfigs)
	}
	values := make(map[string]map[string]setting)
	var untold []error
	for _, d := range described {
		if d.Err != nil && (brokers.Unsupported(d.Err) ||
			errors.Is(d.Err, kerr.UnknownTopicOrPartition) && there(ctx, admin, d.Name)) {
			untold = append(untold, fmt.Errorf("topic %s: %w: the brokers, or a proxy before "+
				"them, know the topic and refuse DescribeConfigs of it (%w)", d.Name, ErrUntold,
				d.Err))
			continue
		}
		if d.Err != nil {
			return nil, fmt.Errorf("describe topic %s: %w", d.Name, d.Err)
		}
		values[d.Name] = make(map[string]setting)
		for _, c := range d.Configs {
			values[d.Name][c.Key] = setting{c.MaybeValue(),
				c.Source == kmsg.ConfigSourceDynamicTopicConfig}
		}
	}
	return values, errors.Join(untold...)
}

// there reports whether Metadata has a topic.
func there(ctx context.Context, admin *kadm.Client, topic string) bool {
	details, err := admin.ListTopics(ctx, topic)
	return err == nil && details[topic].Err == nil && len(details[topic].Partitions) > 0
}

// orUntold takes what cannot be asked for as empty. The reason is for who shall hear of it.
func orUntold[M any](values M, err error) (_ M, untold, failed error) {
	if errors.Is(err, ErrUntold) {
		return values, err, nil
	}
	return values, nil, err
}

func topicSettings(
	ctx context.Context, client *kgo.Client, topic string,
) (map[string]setting, error) {
	all, err := settings(ctx, client, topic)
	return all[topic], err
}
