// Package connect turns a configuration into what it names: clients of Kafka, stores, scopes,
// consumer groups, policies. It checks them against each other and sets them up, for every command
// and for the process that runs.
package connect

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
)

// StartTimeout bounds every command's talk with the servers before the work begins.
const StartTimeout = 60 * time.Second

// AdminClients are clients that join no group, for a command.
func AdminClients(
	ctx context.Context, c config.Config, log *slog.Logger, more ...kgo.Opt,
) (kafka.Clusters, error) {
	input, err := kafka.NewConnector(ctx, c.Kafka, log)
	if err != nil {
		return kafka.Clusters{}, err
	}
	output, err := kafka.NewOutputConnector(ctx, c.Kafka, input, log)
	if err != nil {
		return kafka.Clusters{}, err
	}
	return NewClients(input, output, c, log, more...)
}

// NewClients is AdminClients over connectors that there are already.
func NewClients(
	input, output *kafka.Connector, c config.Config, log *slog.Logger, more ...kgo.Opt,
) (kafka.Clusters, error) {
	client, err := NewClient(input, c, log, more...)
	if err != nil || output == input {
		return kafka.OneCluster(client), err
	}
	clusters := kafka.Clusters{Input: client}
	if clusters.Output, err = NewClient(output, c, log, more...); err != nil {
		client.Close()
		return kafka.Clusters{}, err
	}
	return clusters, nil
}

// AdminClient is a client of the input's cluster that joins no group, for a command.
func AdminClient(
	ctx context.Context, c config.Config, log *slog.Logger, more ...kgo.Opt,
) (*kgo.Client, error) {
	connector, err := kafka.NewConnector(ctx, c.Kafka, log)
	if err != nil {
		return nil, err
	}
	return NewClient(connector, c, log, more...)
}

// NewClient is AdminClient over a connector that there is already.
func NewClient(
	connector *kafka.Connector, c config.Config, log *slog.Logger, more ...kgo.Opt,
) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(connector.AdminOptions("kdedup-"+c.Instance, log),
		more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}
