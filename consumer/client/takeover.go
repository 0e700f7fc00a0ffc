package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/pause"
)

// takeover ends what an earlier session with the same transactional ID left behind. It runs before
// the group is joined: pending offsets would hold up their partitions.
//
// To initialise the producer ID is enough where the coordinator knows of an open transaction. It does
// not know of one whose markers were lost: a coordinator takes a partition without a leader for a
// deleted one, sends it no marker and completes the transaction (KRaftMetadataCache.
// getPartitionLeaderEndpoint, TransactionMarkerChannelManager; seen when the only broker of a cluster
// with Kafka 4.3.1 is stopped). Then offsets stay unstable for ever, or the next transaction of the
// same producer decides over them and over the records one by one. So one more transaction is aborted,
// with the group and each partition that has an open one of this producer.
type takeover struct {
	client *kgo.Client
	opts   *Options
	id     int64
	epoch  int16
}

const (
	retryTakeover   = 100 * time.Millisecond
	takeoverTimeout = time.Minute
)

// takeOver is called while no session uses the transactional ID.
func takeOver(ctx context.Context, opts *Options) error {
	ctx, cancel := context.WithTimeout(ctx, takeoverTimeout)
	defer cancel()
	client, err := kgo.NewClient(append(opts.Connection(), kgo.MaxVersions(beforeImplicitPartitions()))...)
	if err != nil {
		return fmt.Errorf("take over %s: %w", opts.TransactionalID, err)
	}
	defer client.Close()
	t := &takeover{client: client, opts: opts}
	for _, step := range []struct {
		what string
		run  func(context.Context) error
	}{
		{"init producer ID", t.initProducerID},
		{"add partitions", t.addHanging},
		{"add the group", func(ctx context.Context) error { return addGroup(ctx, client, opts, t.id, t.epoch) }},
		{"abort", t.abort},
	} {
		err := pause.Repeat(ctx, retryTakeover, passesWithTransaction, func() error { return step.run(ctx) })
		if err != nil {
			return fmt.Errorf("take over %s: %s: %w", opts.TransactionalID, step.what, err)
		}
	}
	return nil
}

// beforeImplicitPartitions are the versions in which a client adds partitions to a transaction itself.
// Since KIP-890 they come with the first record, and there is none to write here.
func beforeImplicitPartitions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.AddPartitionsToTxn), 3)
	v.SetMaxKeyVersion(int16(kmsg.AddOffsetsToTxn), 3)
	v.SetMaxKeyVersion(int16(kmsg.EndTxn), 4)
	return v
}

// passesWithTransaction: the coordinator still writes the markers of the transaction before.
func passesWithTransaction(err error) bool {
	return errors.Is(err, kerr.ConcurrentTransactions) || kerr.IsRetriable(err)
}

func (t *takeover) initProducerID(ctx context.Context) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &t.opts.TransactionalID, int32(t.opts.TransactionTimeout.Milliseconds())
	answer, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	t.id, t.epoch = answer.ProducerID, answer.ProducerEpoch
	return kerr.ErrorForCode(answer.ErrorCode)
}

// addHanging adds the partitions on which this producer has a transaction that its coordinator does
// not know of.
func (t *takeover) addHanging(ctx context.Context) error {
	hanging, err := t.hanging(ctx)
	if err != nil || len(hanging) == 0 {
		return err
	}
	t.opts.Logger.Warn("transaction markers are missing: aborting what they should have ended", "partitions", hanging)
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.opts.TransactionalID, t.id, t.epoch
	for topic, partitions := range hanging {
		req.Topics = append(req.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: topic, Partitions: partitions})
	}
	answer, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	var errs []error
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			errs = append(errs, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return errors.Join(errs...)
}

// hanging asks the partitions' leaders, which needs the right to read the topics. Without it, and on
// brokers before 3.0 (KIP-664), nothing is found.
func (t *takeover) hanging(ctx context.Context) (map[string][]int32, error) {
	admin := kadm.NewClient(t.client)
	var set kadm.TopicsSet
	details, err := admin.ListTopics(ctx, t.opts.written()...)
	if err != nil {
		return nil, err
	}
	details.EachPartition(func(p kadm.PartitionDetail) { set.Add(p.Topic, p.Partition) })
	described, err := admin.DescribeProducers(ctx, set)
	if err != nil {
		t.opts.Logger.Debug("cannot look for missing transaction markers", "error", err)
	}
	found := make(map[string][]int32)
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.ProducerID == t.id && p.CurrentTxnStartOffset >= 0 {
			found[p.Topic] = append(found[p.Topic], p.Partition)
		}
	})
	return found, nil
}

func (t *takeover) abort(ctx context.Context) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.opts.TransactionalID, t.id, t.epoch
	answer, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}
