package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/brokers"
)

// deliveries finds out whether entries can have the delivery that they name, and the timeouts. The
// brokers are asked once for all of them.
type deliveries struct {
	clusters kafka.Clusters
	config   config.Config
	limits   map[*kgo.Client]*kafka.BrokerLimits
	asked    bool
	missing  error // why there are no transactions
}

func newDeliveries(clusters kafka.Clusters, c config.Config) *deliveries {
	limits := make(map[*kgo.Client]*kafka.BrokerLimits)
	for _, client := range []*kgo.Client{clusters.Input, clusters.Output} {
		limits[client] = kafka.NewBrokerLimits(client)
	}
	return &deliveries{clusters: clusters, config: c, limits: limits}
}

// check refuses exactly_once where the brokers have no transactions.
func (d *deliveries) check(ctx context.Context, e Entry) error {
	if e.Delivery != config.DeliveryExactlyOnce {
		return nil
	}
	if !d.asked {
		d.missing = kafka.CheckTransactions(ctx, d.clusters.OfGroup(e.Topic),
			transactionalIDs(d.config, e.Topic)[0], e.ConsumerGroup)
		d.asked = true
	}
	if d.missing == nil {
		return nil
	}
	return fmt.Errorf("%s.delivery: exactly_once needs Kafka transactions: %w; %s", e.Path,
		d.missing, brokers.WithoutTransactions)
}

// checkTopics refuses exactly_once where a topic takes no transactions, though the brokers have
// them.
func (d *deliveries) checkTopics(ctx context.Context, e Entry) (problems []error) {
	if e.Delivery != config.DeliveryExactlyOnce {
		return nil
	}
	for _, err := range kafka.CheckTransactional(ctx, d.clusters, e.Topic,
		transactionalIDs(d.config, e.Topic)[0]) {
		problems = append(problems, fmt.Errorf("%s.delivery: exactly_once: %w", e.Path, err))
	}
	return problems
}

// checkLimits refuses settings that the brokers never admit.
func (d *deliveries) checkLimits(ctx context.Context, e Entry) (problems []error) {
	for _, err := range d.limits[d.clusters.OfGroup(e.Topic)].Check(ctx, e.Topic,
		transactionalIDs(d.config, e.Topic)) {
		problems = append(problems, fmt.Errorf("%s.%w", e.Path, err))
	}
	return problems
}

// setUp makes the topics of an entry, if it can have its delivery on these brokers and on them.
func (d *deliveries) setUp(ctx context.Context, e Entry, dryRun bool, say func(string)) error {
	if err := d.check(ctx, e); err != nil {
		return err
	}
	if err := errors.Join(d.checkLimits(ctx, e)...); err != nil {
		return err
	}
	if err := kafka.Setup(ctx, d.clusters, e.Topic, dryRun, say); err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	if dryRun {
		return nil
	}
	return errors.Join(d.checkTopics(ctx, e)...)
}
