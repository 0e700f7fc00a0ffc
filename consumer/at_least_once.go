package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// AtLeastOnce is a session without transactions: forwards first, then fences, then offsets. A crash
// between the first acknowledged forward and the fence repeats forwards; nothing is ever lost.
//
// A rebalance waits until the batch in hand is committed, so that a batch that was forwarded in
// part is not forwarded by the next owner too. A batch that still waits for claims is given back.
type AtLeastOnce struct {
	*member
	fences acks
}

// JoinAtLeastOnce makes a client that joins the group in the background.
func JoinAtLeastOnce(opts Options) (*AtLeastOnce, error) {
	m := newMember(opts)
	client, err := kgo.NewClient(append(opts.client(m),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsCallbackBlocked(func(context.Context, *kgo.Client) { m.hurry() }))...)
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", opts.ConsumerGroup, err)
	}
	m.client = client
	m.lag = watchLag(m)
	return &AtLeastOnce{member: m}, nil
}

// Poll waits for the next batch; it returns nil when ctx ends.
func (a *AtLeastOnce) Poll(ctx context.Context) (*Batch, error) {
	batch, err := a.poll(ctx, a.client.PollRecords)
	if batch == nil {
		a.client.AllowRebalance()
	}
	return batch, err
}

// Begin does nothing: there is no transaction.
func (a *AtLeastOnce) Begin(context.Context, *Batch) error { return nil }

// Produce sends a record with the idempotent producer.
func (a *AtLeastOnce) Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	a.client.Produce(ctx, r, promise)
}

// Flush returns when every record that was produced is acknowledged or has failed.
func (a *AtLeastOnce) Flush(ctx context.Context) error { return a.client.Flush(ctx) }

// Commit writes the fences, waits for them and commits the offsets. After an error the session must
// be closed: the member may have lost its partitions. The next owner finds the fences.
func (a *AtLeastOnce) Commit(ctx context.Context, b *Batch) error {
	for _, r := range a.fenceRecords(b) {
		a.client.Produce(ctx, r, a.fences.promise)
	}
	if err := a.client.Flush(ctx); err != nil {
		return fmt.Errorf("flush fences: %w", err)
	}
	if err := a.fences.take(); err != nil {
		return fmt.Errorf("write fence: %w", err)
	}
	crashpoint.At("fences-acknowledged")
	if err := a.commitOffsets(ctx, b); err != nil {
		return fmt.Errorf("commit offsets: %w", inputError(err))
	}
	a.settle(b)
	a.next()
	return nil
}

func (a *AtLeastOnce) commitOffsets(ctx context.Context, b *Batch) error {
	offsets := make(map[int32]kgo.EpochOffset, len(b.Spans))
	for _, s := range b.Spans {
		offsets[s.Partition] = kgo.EpochOffset{Epoch: s.LeaderEpoch, Offset: s.Next}
	}
	var errs []error
	a.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{a.opts.Input: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			errs = append(errs, err)
			errs = append(errs, commitErrors(response)...)
		})
	return errors.Join(errs...)
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

// Abort gives a batch back of which nothing was produced: the session returns to its last commit.
// The revocation that may wait for the batch is still held back while the offsets are set.
func (a *AtLeastOnce) Abort(_ context.Context, b *Batch, why error) error {
	a.client.SetOffsets(a.client.CommittedOffsets())
	a.giveBack(b)
	a.next()
	return fmt.Errorf("%w: %w", ErrAborted, why)
}

func (a *AtLeastOnce) next() {
	a.reset()
	a.client.AllowRebalance()
}

// Close leaves the group.
func (a *AtLeastOnce) Close() {
	a.client.CloseAllowingRebalance()
	a.lag.stop()
}
