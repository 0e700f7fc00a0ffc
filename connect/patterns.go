package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
)

// Expand asks the cluster for its topics and puts an entry for each that a pattern matches in the
// place of the pattern. The left ones have none, for a reason each.
func Expand(
	ctx context.Context, client *kgo.Client, c config.Config,
) (expanded config.Config, left []error, err error) {
	if !c.HasPatterns() {
		return c, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	names, err := kafka.TopicNames(ctx, client)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("look for the topics of the patterns: %w", err)
	}
	expanded, left = c.Expand(names)
	return expanded, left, nil
}

// ExpandFor is Expand for a command that does its work for all topics that have an entry, and says
// which have none.
func ExpandFor(
	ctx context.Context, c config.Config, log *slog.Logger, say func(string),
) (_ config.Config, err error) {
	if !c.HasPatterns() {
		return c, nil
	}
	servers := NewServers(c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return config.Config{}, err
	}
	c, left, err := Expand(ctx, clusters.Input, c)
	for _, reason := range left {
		say("left out: " + reason.Error())
	}
	return c, err
}

// SetupMissing is kdedup setup for the entries that ask for it: it makes their topics that are
// missing, and those of their claim logs.
func SetupMissing(
	ctx context.Context, clusters kafka.Clusters, c config.Config, entries []Entry,
	log *slog.Logger,
) error {
	transactions := newDeliveries(clusters, c)
	var problems []error
	for _, e := range entries {
		if !e.AutoSetup {
			continue
		}
		say := func(line string) { log.Info(line, "topic", e.Input) }
		err := transactions.setUp(ctx, e, false, say)
		if err == nil {
			one := c
			one.Topics = []config.Topic{e.Topic}
			if err = SetupClaimLogs(ctx, clusters, one, log, false, say); err != nil {
				err = fmt.Errorf("%s: %w", e.Path, err)
			}
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
