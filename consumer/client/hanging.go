package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// openProducer has a transaction open on a partition since the offset start.
type openProducer struct {
	id        int64
	partition int32
	start     int64
}

// endHanging takes over the transactional IDs of this group whose transactions are over for their
// coordinators and open on the fence partitions: see takeover. If a lane with that ID lives, it is
// fenced by that, joins again and loses nothing.
func endHanging(ctx context.Context, admin *kadm.Client, opts *Options, partitions []int32) error {
	before, err := openProducers(ctx, admin, opts.FenceTopic, partitions)
	if err != nil || len(before) == 0 {
		return err
	}
	over, err := endedTransactions(ctx, admin, before)
	if err != nil {
		return err
	}
	// What is still open now was open when its coordinator already took it for ended.
	after, err := openProducers(ctx, admin, opts.FenceTopic, partitions)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range hanging(before, after, over) {
		if !isOfGroup(name, opts.ConsumerGroup) {
			continue // not a lane of this pipeline
		}
		opts.Logger.Warn(
			"transaction markers of another lane are missing: it will have to join again",
			"transactional_id", name)
		other := *opts
		other.TransactionalID = name
		errs = append(errs, takeOver(ctx, &other))
	}
	return errors.Join(errs...)
}

func openProducers(
	ctx context.Context, admin *kadm.Client, topic string, partitions []int32,
) (map[openProducer]bool, error) {
	var set kadm.TopicsSet
	set.Add(topic, partitions...)
	described, err := openTransactions(ctx, admin, set)
	if err != nil {
		return nil, fmt.Errorf("describe producers of %s: %w", topic, err)
	}
	open := make(map[openProducer]bool)
	for _, p := range described {
		open[openProducer{p.ProducerID, p.Partition, p.CurrentTxnStartOffset}] = true
	}
	return open, nil
}

// openTransactions asks the partitions' leaders, which needs the right to read the topics and Kafka
// 3.0 (KIP-664). With an error it returns what the others have told.
func openTransactions(
	ctx context.Context, admin *kadm.Client, set kadm.TopicsSet,
) (open []kadm.DescribedProducer, err error) {
	described, err := admin.DescribeProducers(ctx, set)
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, p)
		}
	})
	return open, err
}

// endedTransactions returns the transactional IDs, by producer ID, whose last transaction has
// ended.
func endedTransactions(
	ctx context.Context, admin *kadm.Client, open map[openProducer]bool,
) (map[int64]string, error) {
	var ids []int64
	for p := range open {
		ids = append(ids, p.id)
	}
	listed, err := admin.ListTransactions(ctx, ids, nil)
	if err != nil {
		return nil, fmt.Errorf("list transactions: %w", err)
	}
	ended := []string{"Empty", "CompleteCommit", "CompleteAbort"}
	names := make(map[int64]string)
	for _, transaction := range listed {
		if slices.Contains(ended, transaction.State) {
			names[transaction.ProducerID] = transaction.TxnID
		}
	}
	return names, nil
}

func hanging(before, after map[openProducer]bool, over map[int64]string) []string {
	names := make(map[string]bool)
	for p := range before {
		if name, ok := over[p.id]; ok && after[p] {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
