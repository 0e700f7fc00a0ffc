// Package member is what the hand-written contestants of a benchmark share: being members of a
// consumer group that reads one topic, writes another and commits after what it wrote is
// acknowledged. The options are those that kdedup uses, where both have them.
package member

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Options are the flags that all contestants have.
type Options struct {
	Brokers, Group, Input, Output string
	Batch                         int // most records of one poll
	Members                       int // of the group, in this process
}

// Flags defines them with a contestant's own defaults.
func Flags(batch, members int) *Options {
	o := new(Options)
	flag.StringVar(&o.Brokers, "brokers", "127.0.0.1:9092", "brokers, with commas")
	flag.StringVar(&o.Group, "group", "", "consumer group")
	flag.StringVar(&o.Input, "input", "", "topic to read")
	flag.StringVar(&o.Output, "output", "", "topic to write, with as many partitions")
	flag.IntVar(&o.Batch, "batch", batch, "most records of one poll")
	flag.IntVar(&o.Members, "members", members, "members of the group in this process")
	return o
}

// Main runs the members until a signal, and ends the process.
func (o *Options) Main(run func(ctx context.Context, member int) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	group, running := errgroup.WithContext(ctx)
	for member := range o.Members {
		group.Go(func() error { return run(running, member) })
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fetchBytes made all of these programs fastest, measured with 1, 4 and 32 MiB. More only takes
// memory.
const fetchBytes = 4 << 20

// Client returns the options of a member. It commits nothing by itself.
func (o *Options) Client(more ...kgo.Opt) []kgo.Opt {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(o.Brokers, ",")...),
		kgo.ConsumerGroup(o.Group),
		kgo.ConsumeTopics(o.Input),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(),
		kgo.RebalanceTimeout(5 * time.Minute), // a poll of slow records is long
		kgo.SessionTimeout(6 * time.Second),   // the least that brokers take by default
		kgo.HeartbeatInterval(2 * time.Second),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(fetchBytes),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(20 * time.Millisecond), // a flush does not wait for it
		kgo.MaxBufferedRecords(2*o.Batch + 1024),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client,
			partitions map[string][]int32) {
			if len(partitions) > 0 { // the benchmark's clock starts at this line
				log.Info("partitions assigned", "partitions", partitions[o.Input])
			}
		}),
	}, more...)
}

// Forward decides over the records of one poll and produces those that go on.
type Forward func(ctx context.Context, client *kgo.Client, records []*kgo.Record) error

// AtLeastOnce is the loop of a careful consumer: poll, forward, wait for the acknowledgements,
// commit. A rebalance waits for the commit.
func (o *Options) AtLeastOnce(ctx context.Context, forward Forward) error {
	client, err := kgo.NewClient(o.Client(kgo.BlockRebalanceOnPoll())...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, o.Batch)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("poll: %w", err)
		}
		if err := forward(ctx, client, fetches.Records()); err != nil {
			return err
		}
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		client.AllowRebalance()
	}
	return ctx.Err()
}

// Copy is the record for the output: the same bytes in the same partition.
func (o *Options) Copy(r *kgo.Record) *kgo.Record {
	return &kgo.Record{
		Topic: o.Output, Partition: r.Partition,
		Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp,
	}
}

// ID is the record's message ID, from its header.
func ID(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "message-id" {
			return string(h.Value)
		}
	}
	return ""
}
