package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/crashpoint"
	"github.com/kdedup/kdedup/internal/pause"
)

// takeover ends what an earlier session with the same transactional ID left behind. It runs before
// the group is joined: pending offsets would hold up their partitions.
//
// To initialise the producer ID is enough where the coordinator knows of an open transaction. It
// does not know of one whose markers were lost: a coordinator takes a partition without a leader
// for a deleted one, sends it no marker and completes the transaction (KRaftMetadataCache.
// getPartitionLeaderEndpoint, TransactionMarkerChannelManager; seen when the only broker of a
// cluster with Kafka 4.3.1 is stopped). Then offsets stay unstable for ever, or the next
// transaction of the same producer decides over them and over the records one by one. So one more
// transaction is ended, with the group and each partition that has an open one of this producer,
// and as the coordinator had decided over that: what it has committed may have its markers on some
// partitions.
type takeover struct {
	client *kgo.Client
	opts   *Options
	id     int64
	epoch  int16
	last   kadm.DescribedTransaction // before the producer ID was initialised
	commit bool                      // that is how it ended, and nothing older is open
}

const (
	retryTakeover   = 100 * time.Millisecond
	takeoverTimeout = time.Minute
)

// takeOver is called while no session uses the transactional ID.
func takeOver(ctx context.Context, opts *Options) error {
	ctx, cancel := context.WithTimeout(ctx, takeoverTimeout)
	defer cancel()
	client, end, err := asking(opts.TakesOver, opts.Connection, TakingOver())
	if err != nil {
		return fmt.Errorf("take over %s: %w", opts.TransactionalID, err)
	}
	defer end()
	t := &takeover{client: client, opts: opts}
	for _, step := range []struct {
		what string
		run  func(context.Context) error
	}{
		{"describe", t.describe},
		{"init producer ID", t.initProducerID},
		{"add partitions", func(ctx context.Context) error {
			crashpoint.At("predecessor-fenced")
			return t.addHanging(ctx)
		}},
		{"add the group", func(ctx context.Context) error {
			return addGroup(ctx, client, opts, t.id, t.epoch)
		}},
		{"end", t.end},
	} {
		err := pause.Repeat(ctx, retryTakeover, passesWithTransaction, func() error {
			return step.run(ctx)
		})
		if err != nil {
			return fmt.Errorf("take over %s: %s: %w", opts.TransactionalID, step.what, err)
		}
	}
	crashpoint.At("predecessor-over")
	return nil
}

// TakingOver is for the client of a process that takes over for all lanes.
func TakingOver() kgo.Opt { return kgo.MaxVersions(beforeImplicitPartitions()) }

// beforeImplicitPartitions are the versions in which a client adds partitions to a transaction
// itself. Since KIP-890 they come with the first record, and there is none to write here.
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

// describe asks how the last transaction ended: to initialise the producer ID makes the coordinator
// forget it. One that is open is aborted by that. Brokers before 3.0 do not tell.
func (t *takeover) describe(ctx context.Context) error {
	described, err := kadm.NewClient(t.client).DescribeTransactions(ctx, t.opts.TransactionalID)
	if err == nil {
		t.last, err = described[t.opts.TransactionalID], described[t.opts.TransactionalID].Err
	}
	switch {
	case err == nil && strings.HasPrefix(t.last.State, "Prepare"):
		return kerr.ConcurrentTransactions
	case err != nil && (passesWithTransaction(err) || kgo.IsRetryableBrokerErr(err)):
		return err
	}
	return nil
}

func (t *takeover) initProducerID(ctx context.Context) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &t.opts.TransactionalID,
		int32(t.opts.TransactionTimeout.Milliseconds())
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
	open, err := openOf(ctx, kadm.NewClient(t.client), t.opts, t.id)
	if err != nil || len(open) == 0 {
		return err
	}
	t.commit = t.last.State == "CompleteCommit"
	hanging := make(map[string][]int32)
	for _, p := range open {
		hanging[p.Topic] = append(hanging[p.Topic], p.Partition)
		// Since KIP-890 the coordinator raises the epoch at the end of a transaction.
		t.commit = t.commit && (p.ProducerEpoch == t.last.ProducerEpoch ||
			p.ProducerEpoch == t.last.ProducerEpoch-1)
	}
	t.opts.Logger.Warn("transaction markers are missing: ending what they should have ended",
		"partitions", hanging, "commit", t.commit)
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.opts.TransactionalID, t.id, t.epoch
	for topic, partitions := range hanging {
		req.Topics = append(req.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: topic,
			Partitions: partitions})
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

// openOf finds where a producer has an open transaction. Without the right to ask, and on old
// brokers, that is nowhere.
func openOf(
	ctx context.Context, admin *kadm.Client, opts *Options, producer int64,
) ([]kadm.DescribedProducer, error) {
	var set kadm.TopicsSet
	details, err := admin.ListTopics(ctx, opts.written()...)
	if err != nil {
		return nil, err
	}
	details.EachPartition(func(p kadm.PartitionDetail) { set.Add(p.Topic, p.Partition) })
	open, err := openTransactions(ctx, admin, set)
	if err != nil {
		opts.Logger.Debug("cannot look for missing transaction markers", "error", err)
	}
	return slices.DeleteFunc(open, func(p kadm.DescribedProducer) bool {
		return p.ProducerID != producer
	}), nil
}

func (t *takeover) end(ctx context.Context) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.opts.TransactionalID,
		t.id, t.epoch, t.commit
	answer, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}
