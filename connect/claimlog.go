package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/kafkalog"
)

// claimLogOptions are those of a store on a log, but for its index. Its calls wait for the log at
// most as long as the configuration says.
func claimLogOptions(
	ctx context.Context, c config.Config, log *slog.Logger,
) (claimlog.Options, error) {
	options := claimlog.Options{Wait: c.Store.Kafka.Timeout, Logger: log}
	if c.Store.Type == config.StoreCassandra {
		logs, err := cassandraLogs(c.Store.Cassandra, log)
		if err != nil {
			return options, err
		}
		options.Opener, options.Wait = logs, 2*c.Store.Cassandra.Timeout
		return options, nil
	}
	logs, err := topicLogs(ctx, c, log)
	if err != nil {
		return options, err
	}
	options.Opener = logs
	return options, nil
}

// claimsConnector is how clients reach the cluster that has the claim log.
func claimsConnector(
	ctx context.Context, c config.Config, log *slog.Logger,
) (*kafka.Connector, error) {
	if c.ClaimsApart() {
		return kafka.NewOutputConnector(ctx, c.Kafka, nil, log)
	}
	return kafka.NewConnector(ctx, c.Kafka, log)
}

// ClaimsClient is the client of the cluster that has the claim log.
func ClaimsClient(clusters kafka.Clusters, c config.Config) *kgo.Client {
	if c.ClaimsApart() {
		return clusters.Output
	}
	return clusters.Input
}

// topicLogs leads to the claim logs on the Kafka cluster of the configuration.
func topicLogs(
	ctx context.Context, c config.Config, log *slog.Logger,
) (*kafkalog.Logs, error) {
	connector, err := claimsConnector(ctx, c, log)
	if err != nil {
		return nil, err
	}
	return kafkalog.New(kafkalog.Options{
		Connection: connector.AdminOptions("kdedup-"+c.Instance+"-claims", log),
		Topic:      c.Store.Kafka.Topic, Logger: log,
	}), nil
}

func openClaimLog(
	ctx context.Context, c config.Config, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	options, err := claimLogOptions(ctx, c, log)
	if err != nil {
		return nil, err
	}
	options.Registerer = reg
	if path, _ := c.Store.IndexPath(); path != nil {
		options.Path = filepath.Join(*path, "instance-"+c.Instance)
	}
	return claimlog.Open(options), nil
}

// OpenStoreFor is OpenStore for a command that asks about few claims. A claim log is read without
// the directory of the index, which a running process has.
func OpenStoreFor(
	ctx context.Context, c config.Config, only claimlog.Only, log *slog.Logger,
) (dedup.Store, error) {
	if !c.Store.Logs() {
		return OpenStore(ctx, c, prometheus.NewRegistry(), log)
	}
	options, err := claimLogOptions(ctx, c, log)
	if err != nil {
		return nil, err
	}
	options.Only = only
	return claimlog.Open(options), nil
}

// WaitReady returns when the store can decide claims of the scope soon: a claim log is read first,
// however long that takes.
func WaitReady(ctx context.Context, store dedup.Store, scope dedup.Scope) error {
	if log, is := dedup.Unwrapped(store).(*claimlog.Store); is {
		return log.Await(ctx, scope)
	}
	return nil
}

// Keep begins to keep a part of the claim logs of a configuration, whose patterns are expanded, for
// other processes. It does not wait until that is read.
func Keep(store dedup.Store, c config.Config) error {
	log, is := dedup.Unwrapped(store).(*claimlog.Store)
	if !is {
		return errors.New("store: has no claim log, of which something could be kept")
	}
	for _, t := range c.Topics {
		if err := log.Use(ScopeOf(t, "")); err != nil {
			return err
		}
	}
	for _, s := range c.API.Scopes {
		if err := log.Use(APIScope(s)); err != nil {
			return err
		}
	}
	return nil
}

// CheckClaimLogs asks for the rights on the claim logs of a configuration, and whether they can
// hold the claims.
func CheckClaimLogs(ctx context.Context, clusters kafka.Clusters, c config.Config) error {
	if err := clusters.Ping(ctx); err != nil {
		return err
	}
	return checkClaimLogs(ctx, clusters, c)
}

// WaitReadyShowing is WaitReady that shows how far the log is read, in blocks.
func WaitReadyShowing(
	ctx context.Context, store dedup.Store, scope dedup.Scope, show func(done, total int64),
) error {
	log, is := dedup.Unwrapped(store).(*claimlog.Store)
	if !is {
		return nil
	}
	read := make(chan error, 1)
	go func() { read <- log.Await(ctx, scope) }()
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-read:
			return err
		case <-tick.C:
			for _, s := range log.States() {
				if s.Group == scope.ConsumerGroup && !s.AtEnd && s.Of > 0 {
					show(s.Of-s.Left, s.Of)
				}
			}
		}
	}
}

const showEvery = 200 * time.Millisecond

// LogStates tell of the claim logs of a store that has some.
func LogStates(store dedup.Store) []claimlog.State {
	log, is := dedup.Unwrapped(store).(*claimlog.Store)
	if !is {
		return nil
	}
	return log.States()
}

// CheckReady returns an error while claims wait for a claim log.
func CheckReady(store dedup.Store) error {
	var problems []error
	for _, s := range LogStates(store) {
		switch {
		case s.Err != nil:
			problems = append(problems, fmt.Errorf("the claim log of %s: %w", s.Group, s.Err))
		case !s.AtEnd:
			problems = append(problems, fmt.Errorf("the claim log of %s is being read: %d of %d "+
				"blocks to go", s.Group, s.Left, s.Of))
		}
	}
	return errors.Join(problems...)
}

// claimGroup is a consumer group of scopes, and the entries that claim in it.
type claimGroup struct {
	name   string
	ttl    time.Duration // the longest
	inputs []config.Topic
}

func claimGroups(c config.Config) (groups []claimGroup) {
	for _, t := range c.Topics {
		at := slices.IndexFunc(groups, func(g claimGroup) bool { return g.name == t.ScopeGroup })
		if at < 0 {
			at = len(groups)
			groups = append(groups, claimGroup{name: t.ScopeGroup})
		}
		groups[at].ttl = max(groups[at].ttl, t.TTL)
		groups[at].inputs = append(groups[at].inputs, t)
	}
	for _, s := range c.API.Scopes { // they share the logs of the topics
		for at := range groups {
			if groups[at].name == s.Group {
				groups[at].ttl = max(groups[at].ttl, s.TTL)
			}
		}
	}
	return groups
}

// SetupClaimLogs makes the claim logs of the groups. Topics are made as durable as the inputs, and
// the retention of one that exists is raised to the ttl.
func SetupClaimLogs(
	ctx context.Context, clusters kafka.Clusters, c config.Config, log *slog.Logger, dryRun bool,
	say func(string),
) error {
	switch {
	case !c.Store.Logs():
		return nil
	case c.Store.Type == config.StoreCassandra:
		return foundClaimLogs(ctx, c, log, dryRun, say)
	}
	logs, err := topicLogs(ctx, c, log)
	if err != nil {
		return err
	}
	for _, g := range claimGroups(c) {
		for _, topic := range logs.Topics(g.name, c.Store.Kafka.Shards, g.ttl) {
			beside := kafka.Beside{Name: topic.Name, Partitions: topic.Partitions,
				AtLeast: "retention.ms", Forwarded: c.ClaimsApart()}
			for _, s := range topic.Settings {
				beside.Settings = append(beside.Settings, kafka.Setting(s))
			}
			if err := kafka.SetupBeside(ctx, clusters, g.inputs[0], beside, dryRun,
				say); err != nil {
				return fmt.Errorf("store.kafka: %w", err)
			}
		}
	}
	return nil
}

// ClaimTopics are the names of the topics that SetupClaimLogs makes.
func ClaimTopics(c config.Config) (names []string) {
	if c.Store.Type != config.StoreKafka {
		return nil
	}
	logs := kafkalog.New(kafkalog.Options{Topic: c.Store.Kafka.Topic})
	for _, g := range claimGroups(c) {
		for _, topic := range logs.Topics(g.name, c.Store.Kafka.Shards, g.ttl) {
			names = append(names, topic.Name)
		}
	}
	return names
}

// checkClaimLogs asks for the rights on the topics or tables, and whether they can hold the claims.
func checkClaimLogs(ctx context.Context, clusters kafka.Clusters, c config.Config) error {
	if c.Store.Logs() && c.Store.Type == config.StoreCassandra {
		return checkCassandraLogs(ctx, c)
	}
	names := ClaimTopics(c)
	if len(names) == 0 {
		return nil
	}
	err := kafka.CheckRightsBeside(ctx, ClaimsClient(clusters, c), names,
		kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs)
	if err != nil {
		return fmt.Errorf("store.kafka: %w", err)
	}
	logs, err := topicLogs(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for _, g := range claimGroups(c) {
		if err := logs.Check(ctx, g.name, g.ttl); err != nil {
			return fmt.Errorf("store.kafka: %w", err)
		}
	}
	return nil
}
