// Package client is how a session of package consumer speaks with Kafka: on franz-go, with the
// requests that it leaves out.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/brokers"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// Options describe one member of a consumer group.
type Options struct {
	consumer.Options
	Producer []kgo.Opt // partitioner and limits of what the session produces
	// Connection makes the options of one client: brokers, TLS, SASL, logging, client metrics. A
	// client that was closed still calls its hooks for a moment, so that the next one needs its
	// own.
	Connection func() []kgo.Opt
	// Forwarding makes those of a client of another cluster, which has Outputs. Nil: they are where
	// the input is. A transaction has no records of two clusters, so the group and the fence topic
	// of a transactional client are where Outputs are. Those of another one are where the input is.
	Forwarding func() []kgo.Opt

	// Asks and OutputAsks are clients of the process for questions that need no connection of the
	// lane's own: where the input is, and where Outputs are. TakesOver is one more where Outputs
	// are, with the option TakingOver, for transactions of predecessors. In the place of a nil one
	// a client is made for each question.
	Asks, OutputAsks, TakesOver *kgo.Client

	// Of a group that is not where the input is: see atOutput.
	reading     func() []kgo.Opt
	readingAsks *kgo.Client

	Outputs    []string // topics that the session produces to
	Width      Width    // of the topics that it produces to
	Member     string   // stable name: group.instance.id if Static
	Static     bool
	ServerSide bool // KIP-848: the broker assigns partitions

	FromEnd bool // a group without offsets begins at the end of the input
	Earlier Earlier

	// Of a transactional client, see the functions of these names. The earlier one may be empty.
	TransactionalID, EarlierTransactionalID string

	FetchBytes     int // most bytes of one fetch from one broker
	UnpackedBytes  int // most bytes that a batch of the input may unpack to
	SessionTimeout time.Duration
}

// written are all topics with records of the session's transactions.
func (o *Options) written() []string { return append(slices.Clone(o.Outputs), o.FenceTopic) }

// RebalanceTimeout is how long the group waits for a member that still works on a batch.
const RebalanceTimeout = 60 * time.Second

// producer returns the options of each client that produces.
func (o *Options) producer() []kgo.Opt {
	opts := append(slices.Clone(o.Producer), crashpoint.Hooks()...) // none but in test builds
	return append(opts, kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.MaxBufferedRecords(2*o.Limit.Records()+1024))
}

// kafka returns the options of the member's client.
func (o *Options) kafka(events consumer.Events) []kgo.Opt {
	tell := func(of func([]int32)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			of(partitions[o.grouped()])
		}
	}
	opts := append(slices.Clone(o.Connection()), o.producer()...)
	opts = append(append(opts, o.fetching()...),
		kgo.ConsumerGroup(o.ConsumerGroup),
		kgo.ConsumeTopics(o.grouped()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(o.SessionTimeout),
		kgo.HeartbeatInterval(o.SessionTimeout/5),
		kgo.RebalanceTimeout(RebalanceTimeout),
		kgo.OnPartitionsAssigned(tell(events.Assigned)),
		kgo.OnPartitionsRevoked(tell(events.Revoked)),
		kgo.OnPartitionsLost(tell(events.Lost)),
	)
	if o.Static {
		opts = append(opts, kgo.InstanceID(o.Member))
	}
	if o.ServerSide {
		return append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	}
	return append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()))
}

// fetching returns the options of the client that reads the input.
func (o *Options) fetching() []kgo.Opt {
	return []kgo.Opt{
		// A claim by a record of an aborted transaction would make the real one a duplicate.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// Markers are polled to be committed: an input that ends with one has no lag left.
		kgo.KeepControlRecords(),
		// Where the group starts is decided once, in PinStart. Without a commit there is nothing
		// to skip: a partition that was added later, or whose log was cut, begins at its start.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMaxAge(metadataAge),
		kgo.FetchMaxBytes(int32(o.FetchBytes)),
		kgo.FetchMaxPartitionBytes(int32(o.FetchBytes)),
		kgo.FetchMaxWait(500 * time.Millisecond),
	}
}

// asking returns a client of the process, or a new one, and what ends it.
func asking(
	shared *kgo.Client, connection func() []kgo.Opt, more ...kgo.Opt,
) (client *kgo.Client, end func(), err error) {
	if shared != nil {
		return shared, func() {}, nil
	}
	if client, err = kgo.NewClient(append(connection(), more...)...); err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}

// Client implements consumer.Client.
type Client struct {
	opts     Options
	kafka    *kgo.Client  // in the group; it writes the fences
	output   *kgo.Client  // forwards; kafka itself unless Outputs are on another cluster
	input    *kgo.Client  // polls; kafka itself unless the group is on another cluster
	admin    *kadm.Client // of the group's cluster: of the process, or of kafka
	logs     *kadm.Client // of the input's
	apart    *apart       // nil while one client polls and is in the group
	unpacker *unpacker
	here     place // of the group's offsets

	unassigned, forwards *unassigned // of kafka, and of output if it is another one
}

var _ consumer.Client = (*Client)(nil)

func newClient(opts Options, kafka ...kgo.Opt) (*Client, error) {
	unpacker, err := newUnpacker(opts.UnpackedBytes)
	if err != nil {
		return nil, err
	}
	client, unassigned, err := newProducer(append(kafka, kgo.WithDecompressor(unpacker))...)
	if err != nil {
		return nil, err
	}
	admin := kadm.NewClient(cmp.Or(opts.Asks, client))
	return &Client{opts: opts, kafka: client, output: client, input: client, admin: admin,
		logs: admin, unpacker: unpacker, unassigned: unassigned}, nil
}

// JoinAtLeastOnce makes a client that joins the group in the background.
func JoinAtLeastOnce(ctx context.Context, opts Options) (*consumer.AtLeastOnce, error) {
	return consumer.NewAtLeastOnce(opts.Options,
		func(events consumer.Events) (consumer.Client, error) {
			repeats, err := withoutIdempotence(ctx, opts.Asks, opts.Connection)
			if err != nil {
				return nil, err
			}
			client, err := located(ctx)(newClient(opts, append(append(opts.kafka(events),
				repeats...), kgo.BlockRebalanceOnPoll(),
				kgo.OnPartitionsCallbackBlocked(func(context.Context, *kgo.Client) {
					events.Blocked()
				}))...))
			if err != nil || opts.Forwarding == nil {
				return client, err
			}
			repeats, err = withoutIdempotence(ctx, opts.OutputAsks, opts.Forwarding)
			if err == nil {
				client.output, client.forwards, err = newProducer(append(append(opts.Forwarding(),
					opts.producer()...), repeats...)...)
			}
			if err != nil {
				brokers.Leave(client.kafka)
				return nil, fmt.Errorf("the client that forwards: %w", err)
			}
			return client, nil
		})
}

// Poll implements consumer.Client.
func (c *Client) Poll(ctx context.Context, n int) kgo.Fetches {
	var fetches kgo.Fetches
	if c.apart != nil {
		fetches = c.apart.poll(ctx, n)
	} else {
		fetches = c.kafka.PollRecords(ctx, n)
	}
	c.unpacker.polled(c.input.BufferedFetchBytes())
	return withoutLater(fetches)
}

// Seek implements consumer.Client.
func (c *Client) Seek(offsets consumer.Offsets) {
	c.input.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.opts.Input: offsets})
}

// Pause implements consumer.Client.
func (c *Client) Pause(partitions ...int32) {
	c.input.PauseFetchPartitions(map[string][]int32{c.opts.Input: partitions})
}

// Resume implements consumer.Client.
func (c *Client) Resume(partitions ...int32) {
	c.input.ResumeFetchPartitions(map[string][]int32{c.opts.Input: partitions})
}

// Committed implements consumer.Client.
func (c *Client) Committed() consumer.Offsets {
	if c.apart != nil {
		return c.apart.offsets()
	}
	return c.kafka.CommittedOffsets()[c.opts.Input]
}

// GroupOffsets implements consumer.Client.
func (c *Client) GroupOffsets(ctx context.Context) (consumer.Offsets, error) {
	fetched, err := stableOffsets(ctx, cmp.Or(c.opts.Asks, c.kafka), c.opts.ConsumerGroup,
		c.opts.grouped())
	if err != nil {
		return nil, err
	}
	offsets := make(consumer.Offsets)
	for p, at := range fetched {
		if at.Err != nil {
			return nil, fmt.Errorf("offset of partition %d: %w", p, at.Err)
		}
		offsets[p] = kgo.EpochOffset{Epoch: at.LeaderEpoch, Offset: at.At}
	}
	return offsets, nil
}

// Commit implements consumer.Client.
func (c *Client) Commit(ctx context.Context, offsets consumer.Offsets, answered func(error)) {
	c.kafka.CommitOffsets(marking(ctx, c.here.mark()),
		map[string]map[int32]kgo.EpochOffset{c.opts.grouped(): offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse,
			err error) {
			answered(errors.Join(append(commitErrors(response), err)...))
		})
}

func commitErrors(response *kmsg.OffsetCommitResponse) (errs []error) {
	if response == nil {
		return nil
	}
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("partition %d: %w", p.Partition, err))
			}
		}
	}
	return errs
}

// Bounds implements consumer.Client.
func (c *Client) Bounds(ctx context.Context) (map[int32]consumer.Bounds, error) {
	ends, err := c.logs.ListCommittedOffsets(ctx, c.opts.Input)
	if err != nil {
		return nil, err
	}
	starts, err := c.logs.ListStartOffsets(ctx, c.opts.Input)
	if err != nil {
		return nil, err
	}
	highs, err := c.logs.ListEndOffsets(ctx, c.opts.Input)
	if err != nil {
		return nil, err
	}
	bounds := make(map[int32]consumer.Bounds)
	for p, end := range ends[c.opts.Input] {
		start, ok := starts.Lookup(c.opts.Input, p)
		if high, known := highs.Lookup(c.opts.Input, p); ok && known && end.Err == nil &&
			start.Err == nil && high.Err == nil {
			bounds[p] = consumer.Bounds{First: start.Offset, End: end.Offset, High: high.Offset}
		}
	}
	if c.apart != nil {
		c.apart.widen(ctx, len(bounds))
	}
	return bounds, nil
}

// EpochEnds implements consumer.Client. Brokers that do not know the request tell nothing. The
// client that polls is asked, which knows a new leader first.
func (c *Client) EpochEnds(
	ctx context.Context, epochs map[int32]int32,
) (map[int32]int64, error) {
	told, err := kadm.NewClient(c.input).OffsetForLeaderEpoch(ctx,
		kadm.OffsetForLeaderEpochRequest{c.opts.Input: epochs})
	if err != nil {
		if brokers.Unanswered(ctx, c.input, kmsg.OffsetForLeaderEpoch) {
			err = nil
		}
		return nil, err
	}
	ends := make(map[int32]int64)
	for p, at := range told[c.opts.Input] {
		if at.Err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, at.Err)
		}
		if at.EndOffset >= 0 { // else the leader does not know the epoch
			ends[p] = at.EndOffset
		}
	}
	return ends, nil
}

// HasMembers implements consumer.Client.
func (c *Client) HasMembers(ctx context.Context, group string) (bool, error) {
	return hasMembers(ctx, c.admin, group)
}

// Produce implements consumer.Client.
func (c *Client) Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	if r.Topic == c.opts.FenceTopic {
		c.kafka.Produce(ctx, r, promise)
		return
	}
	c.output.Produce(ctx, r, promise)
}

// Flush implements consumer.Client. Forwards and fences of a batch are never under way together: a
// session writes the fences when the forwards are acknowledged.
func (c *Client) Flush(ctx context.Context) error {
	if c.output != c.kafka {
		if err := c.forwards.flush(ctx); err != nil {
			return err
		}
	}
	return c.unassigned.flush(ctx)
}

// Joined implements consumer.Client.
func (c *Client) Joined() bool {
	_, generation := c.kafka.GroupMetadata()
	return generation >= 0
}

// AllowRebalance implements consumer.Client.
func (c *Client) AllowRebalance() { c.kafka.AllowRebalance() }

// Close implements consumer.Client. Nothing is forwarded any more when the group gives the
// partitions to others.
func (c *Client) Close() {
	if c.output != c.kafka {
		c.output.Close()
	}
	if c.apart != nil {
		c.apart.hints.stop() // with the partitions they are forgotten
	}
	brokers.Leave(c.kafka)
	if c.apart != nil {
		c.apart.close()
	}
}
