package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/brokers"
	"github.com/kdedup/kdedup/internal/pause"
)

// Transactions implements consumer.TransactionalClient.
type Transactions struct {
	*Client
	explicit bool // the broker is told what belongs to a transaction
	cuts     *cuts
	looked   int64            // the number of cuts when markers were looked for last
	added    consumer.Offsets // to the transaction
}

// cuts counts the connections that ended.
type cuts struct{ n atomic.Int64 }

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (c *cuts) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { c.n.Add(1) }

var _ consumer.TransactionalClient = (*Transactions)(nil)

// JoinTransactional makes a client that joins the group in the background. What its predecessor of
// the same name left open is aborted now.
func JoinTransactional(ctx context.Context, opts Options) (*consumer.Transactional, error) {
	return consumer.NewTransactional(opts.Options,
		func(events consumer.Events) (consumer.TransactionalClient, error) {
			return newTransactions(ctx, opts, events)
		})
}

func newTransactions(
	ctx context.Context, opts Options, events consumer.Events,
) (*Transactions, error) {
	if opts.Forwarding != nil {
		opts = opts.atOutput()
	}
	explicit, err := explicitTransactions(ctx, &opts)
	if err == nil {
		err = takeOver(ctx, &opts)
	}
	if err == nil {
		err = takeOverEarlier(ctx, &opts)
	}
	if err != nil {
		return nil, err
	}
	cut := new(cuts)
	more := []kgo.Opt{kgo.TransactionalID(opts.TransactionalID),
		kgo.TransactionTimeout(opts.TransactionTimeout), kgo.WithHooks(cut)}
	if explicit {
		more = append(more, kgo.MaxVersions(beforeImplicitOffsets()))
	}
	var client *Client
	if opts.reading != nil {
		client, err = newClientApart(ctx, opts, events, more)
	} else {
		client, err = located(ctx)(newClient(opts, append(opts.kafka(events), more...)...))
	}
	if err != nil {
		return nil, err
	}
	return &Transactions{Client: client, explicit: explicit, cuts: cut}, nil
}

// Begin implements consumer.TransactionalClient.
func (t *Transactions) Begin(ctx context.Context) error {
	if err := t.lookForMarkers(ctx); err != nil {
		return err
	}
	t.added = nil
	return t.kafka.BeginTransaction()
}

// End implements consumer.TransactionalClient.
func (t *Transactions) End(ctx context.Context, commit bool) error {
	err := t.kafka.EndTransaction(ctx, kgo.TransactionEndTry(commit))
	if err == nil && commit && t.apart != nil {
		t.apart.hint(t.added)
	}
	return err
}

// Discard implements consumer.TransactionalClient.
func (t *Transactions) Discard(ctx context.Context) error {
	return t.kafka.AbortBufferedRecords(ctx)
}

// Marked implements consumer.TransactionalClient.
func (t *Transactions) Marked(ctx context.Context) (bool, error) {
	// by the lane's own connection: it is asked for each batch
	described, err := kadm.NewClient(t.kafka).DescribeTransactions(ctx, t.opts.TransactionalID)
	if err != nil {
		return false, err
	}
	state := described[t.opts.TransactionalID].State
	return state != "PrepareCommit" && state != "PrepareAbort", nil
}

// retryOffsets lies between two tries while the markers of the transaction before are written.
const retryOffsets = 5 * time.Millisecond

// AddOffsets implements consumer.TransactionalClient.
func (t *Transactions) AddOffsets(
	ctx context.Context, topicID [16]byte, offsets consumer.Offsets,
) error {
	id, epoch, err := t.kafka.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("producer ID: %w", err)
	}
	concurrent := func(err error) bool { return errors.Is(err, kerr.ConcurrentTransactions) }
	if t.explicit {
		err = pause.Repeat(ctx, retryOffsets, concurrent, func() error {
			return addGroup(ctx, t.kafka, &t.opts, id, epoch)
		})
	}
	if err == nil {
		err = pause.Repeat(ctx, retryOffsets, concurrent, func() error {
			return t.sendOffsets(ctx, id, epoch, topicID, offsets)
		})
	}
	t.added = offsets
	return err
}

// lookForMarkers returns an error if the transaction before has ended without its markers: see
// takeover. That takes a broker that went down.
func (t *Transactions) lookForMarkers(ctx context.Context) error {
	n := t.cuts.n.Load()
	if n == t.looked {
		return nil
	}
	producer, _, err := t.kafka.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("producer ID: %w", err)
	}
	unmarked := func(err error) bool { return errors.Is(err, kerr.ConcurrentTransactions) }
	err = pause.Repeat(ctx, retryOffsets, unmarked, func() error {
		if marked, err := t.Marked(ctx); err == nil && !marked {
			return kerr.ConcurrentTransactions
		}
		return nil // brokers before 3.0 do not tell
	})
	if err != nil {
		return err
	}
	open, err := openOf(ctx, t.admin, &t.opts, producer)
	switch {
	case err != nil:
		return fmt.Errorf("look for transaction markers: %w", err)
	case len(open) > 0:
		return fmt.Errorf("%s[%d]: %w", open[0].Topic, open[0].Partition, consumer.ErrMarkersLost)
	}
	t.looked = n
	return nil
}

// addGroup tells the coordinator of a transaction that the group's offsets belong to it.
func addGroup(ctx context.Context, client *kgo.Client, opts *Options, id int64, epoch int16) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = opts.TransactionalID, id, epoch
	req.Group = opts.ConsumerGroup
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

func (t *Transactions) sendOffsets(
	ctx context.Context, id int64, epoch int16, topicID [16]byte, offsets consumer.Offsets,
) error {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.opts.TransactionalID, id, epoch
	req.Group = t.opts.ConsumerGroup
	req.MemberID, req.Generation = t.kafka.GroupMetadata()
	if t.opts.Static {
		req.InstanceID = &t.opts.Member
	}
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = t.opts.grouped(), topicID
	if t.apart != nil {
		topic.TopicID = t.apart.groupedID
	}
	here := t.here
	if topicID != ([16]byte{}) { // as the fetch told it
		here.topicID = topicID
	}
	mark := here.mark()
	for partition, at := range offsets {
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, at.Offset, at.Epoch,
			kmsg.StringPtr(mark)
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	answer, err := req.RequestWith(ctx, t.kafka)
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

// explicitTransactions reports whether the broker has to be told what belongs to a transaction, as
// before KIP-890. A start has found out that there are transactions; meanwhile another broker, or
// another proxy, may have taken its place.
func explicitTransactions(ctx context.Context, opts *Options) (bool, error) {
	client, end, err := asking(opts.Asks, opts.Connection)
	if err != nil {
		return false, err
	}
	defer end()
	versions, err := brokers.Ask(ctx, client)
	if err != nil {
		return false, err
	}
	if lacking := versions.LackTransactions(); lacking != "" {
		return false, fmt.Errorf("%w, and %s; %s", errNoTransactions, lacking,
			brokers.WithoutTransactions)
	}
	return !versions.TakeImplicitly(), nil
}

var errNoTransactions = errors.New("delivery exactly_once needs Kafka transactions")

// beforeImplicitOffsets are the versions in which a client adds offsets to a transaction itself.
func beforeImplicitOffsets() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
	return v
}
