package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/brokers"
)

// CheckTransactions returns why the brokers have no transactions for a member of the group. Nothing
// is changed: see nobody. To be refused the transactional ID is no reason.
func CheckTransactions(ctx context.Context, client *kgo.Client, member, group string) error {
	versions, err := brokers.Ask(ctx, client)
	if err != nil {
		return nil // an outage, which whatever is asked next tells
	}
	if lacking := versions.LackTransactions(); lacking != "" {
		return errors.New(lacking)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, coordinatorPatience, errNoCoordinator)
	defer cancel()
	err = addOffsetsOfNobody(ctx, client, member, group)
	switch {
	case brokers.Unsupported(err):
		return fmt.Errorf("the brokers refuse %s: %w", kmsg.AddOffsetsToTxn.Name(), err)
	case errors.Is(err, kerr.CoordinatorNotAvailable),
		errors.Is(context.Cause(ctx), errNoCoordinator):
		return fmt.Errorf("%w (%w)", errNoCoordinator, kerr.CoordinatorNotAvailable)
	}
	return nil
}

// coordinatorPatience is enough for a new cluster to make the topic of its coordinators.
const coordinatorPatience = 20 * time.Second

var errNoCoordinator = errors.New("no coordinator of transactions answers, as where " +
	"transaction.state.log.replication.factor is above the number of brokers")

// nobody is a producer that does not exist: no coordinator gives out so high an ID. So a
// coordinator refuses what is asked for it, and nothing is added to a transaction.
const nobody = math.MaxInt64

func addOffsetsOfNobody(ctx context.Context, client *kgo.Client, member, group string) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.Group = member, nobody, group
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

// CheckTransactional returns an error for each topic of the pipeline that takes no transactions,
// though the brokers have them: a diskless one (KIP-1150), for example. All of the topics exist.
func CheckTransactional(
	ctx context.Context, clusters Clusters, t config.Topic, member string,
) []error {
	written := names(t)[1:]
	refused, err := refusing(ctx, clusters.OfGroup(t), member, written)
	if err != nil || len(refused) == 0 {
		return nil // what the brokers do not tell now they tell the lanes
	}
	settings, _ := clusters.settings(ctx, t, written) // they only explain
	var problems []error
	for _, topic := range written {
		if why, ok := refused[topic]; ok {
			problems = append(problems, fmt.Errorf("topic %s%s takes no transactions (%w): name "+
				"one that does, or %s", topic, diskless(settings[topic]), why,
				brokers.WithoutTransactions))
		}
	}
	return problems
}

// refusing asks to add the first partition of each topic to a transaction of nobody. Brokers that
// refuse a topic for what it is do so before they ask who the producer is.
func refusing(
	ctx context.Context, client *kgo.Client, member string, topics []string,
) (map[string]error, error) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID = member, nobody
	for _, topic := range topics {
		req.Topics = append(req.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: topic,
			Partitions: []int32{0}})
	}
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	refused := make(map[string]error)
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); brokers.Unsupported(err) {
				refused[topic.Topic] = err
			}
		}
	}
	return refused, nil
}

// disklessSettings are the names that a topic's setting has had in Inkless, where diskless topics
// (KIP-1150) come from.
var disklessSettings = []string{"diskless.enable", "inkless.enable"}

// diskless names the setting that makes a topic diskless, if it is.
func diskless(settings map[string]setting) string {
	for _, key := range disklessSettings {
		if settings[key].value == "true" {
			return " has " + key + "=true and"
		}
	}
	return ""
}
