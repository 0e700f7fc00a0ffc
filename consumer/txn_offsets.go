package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// retryOffsets lies between two tries while the markers of the transaction before are written.
const retryOffsets = 5 * time.Millisecond

// addOffsets makes the batch's offsets a part of the transaction. An error that wraps errRefused says that the group
// did not take them.
func (t *Transactional) addOffsets(ctx context.Context, b *Batch) error {
	if len(b.Spans) == 0 {
		return nil
	}
	id, epoch, err := t.client.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("producer ID: %w", err)
	}
	concurrent := func(err error) bool { return errors.Is(err, kerr.ConcurrentTransactions) }
	if t.explicit {
		err = repeat(ctx, retryOffsets, concurrent, func() error { return t.addGroup(ctx, id, epoch) })
	}
	if err == nil {
		err = repeat(ctx, retryOffsets, concurrent, func() error { return t.sendOffsets(ctx, id, epoch, b) })
	}
	if isRefusal(err) {
		return fmt.Errorf("%w: %w: %w", errRefused, ErrRevoked, err)
	}
	return inputError(err)
}

func (t *Transactional) addGroup(ctx context.Context, id int64, epoch int16) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.opts.Member, id, epoch
	req.Group = t.opts.ConsumerGroup
	answer, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

func (t *Transactional) sendOffsets(ctx context.Context, id int64, epoch int16, b *Batch) error {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.opts.Member, id, epoch
	req.Group = t.opts.ConsumerGroup
	req.MemberID, req.Generation = t.client.GroupMetadata()
	if t.opts.Static {
		req.InstanceID = &t.opts.Member
	}
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{txnOffsets(t.opts.Input, b)}
	answer, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	var errs []error
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("partition %d: %w", p.Partition, err))
			}
		}
	}
	return errors.Join(errs...)
}

// txnOffsets are the offsets to commit. A partition of which a batch has two spans ends with the second.
func txnOffsets(input string, b *Batch) kmsg.TxnOffsetCommitRequestTopic {
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = input, b.Spans[0].TopicID
	for i := range b.Spans {
		s := &b.Spans[i] // not a copy: the lane notes its claims in other fields meanwhile
		if i+1 < len(b.Spans) && b.Spans[i+1].Partition == s.Partition {
			continue
		}
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = s.Partition, s.Next, s.LeaderEpoch
		topic.Partitions = append(topic.Partitions, p)
	}
	return topic
}

// explicitTransactions reports whether the broker has to be told what belongs to a transaction, as before KIP-890. Brokers
// that take the offsets of a transaction from anyone (before Kafka 2.5, KIP-447) are refused.
func explicitTransactions(ctx context.Context, connection []kgo.Opt) (bool, error) {
	client, err := kgo.NewClient(connection...)
	if err != nil {
		return false, err
	}
	defer client.Close()
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "kdedup", "1"
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return false, fmt.Errorf("ask for the broker's versions: %w", err)
	}
	for _, key := range answer.ApiKeys {
		if key.ApiKey == int16(kmsg.TxnOffsetCommit) && key.MaxVersion < 3 {
			return false, errAnyoneCommits
		}
	}
	for _, feature := range answer.FinalizedFeatures {
		if feature.Name == "transaction.version" && feature.MaxVersionLevel >= 2 {
			return false, nil
		}
	}
	return true, nil
}

var errAnyoneCommits = errors.New(
	"delivery exactly_once needs brokers that check who commits offsets in a transaction: Kafka 2.5 or later (KIP-447); with these, use at_least_once")

// beforeImplicitOffsets are the versions in which a client adds offsets to a transaction itself.
func beforeImplicitOffsets() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
	return v
}
