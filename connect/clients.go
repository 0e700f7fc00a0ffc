// Package connect turns a configuration into what it names: clients of Kafka, stores, scopes,
// consumer groups, policies. It checks them against each other and sets them up, for every command
// and for the process that runs.
package connect

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
)

// StartTimeout bounds every command's talk with the servers before the work begins.
const StartTimeout = 60 * time.Second

// NewClients join no group.
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

// NewClient joins no group.
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
