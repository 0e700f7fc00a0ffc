package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// AtLeastOnce is a session without transactions: forwards first, then fences, then offsets. A crash
// between the first acknowledged forward and the fence repeats forwards; nothing is ever lost.
//
// The fences settle a batch. Its offsets are committed while the next batch is polled and claimed; if they are not, what is
// delivered again is below the fence. Nothing else is forwarded before the group has taken them.
//
// A rebalance waits until the batch in hand is committed, so that a batch that was forwarded in
// part is not forwarded by the next owner too. A batch that still waits for claims is given back.
type AtLeastOnce struct {
	*member
	fences  acks
	offsets atomic.Pointer[offsetCommit] // of the batch before; nil when the lane knows what became of it
}

// JoinAtLeastOnce makes a client that joins the group in the background.
func JoinAtLeastOnce(opts Options) (*AtLeastOnce, error) {
	a := &AtLeastOnce{member: newMember(opts)}
	client, err := kgo.NewClient(append(opts.client(a.member),
		kgo.OnPartitionsRevoked(a.revoke),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsCallbackBlocked(func(context.Context, *kgo.Client) { a.hurry() }))...)
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", opts.ConsumerGroup, err)
	}
	a.client = client
	a.lag = watchLag(a.member)
	return a, nil
}

// Poll waits for the next batch; it returns nil when ctx ends.
func (a *AtLeastOnce) Poll(ctx context.Context) (*Batch, error) {
	polling, cancel := a.offsets.Load().unlessFailed(ctx)
	defer cancel()
	batch, err := a.poll(polling, a.client.PollRecords)
	if batch != nil {
		return batch, err
	}
	a.client.AllowRebalance()
	return nil, cmp.Or(err, a.committed())
}

// Begin returns when the offsets of the batch before are committed: a member that the group has given up forwards no more.
func (a *AtLeastOnce) Begin(context.Context, *Batch) error { return a.committed() }

// Produce sends a record with the idempotent producer.
func (a *AtLeastOnce) Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	a.client.Produce(ctx, r, promise)
}

// Flush returns when every record that was produced is acknowledged or has failed.
func (a *AtLeastOnce) Flush(ctx context.Context) error { return a.client.Flush(ctx) }

// Commit writes the fences, waits for them and sends the offsets. What becomes of these is told by the next Poll, Begin or
// Abort. After an error, here or there, the session must be closed: the member may have lost its partitions. The next owner
// finds the fences.
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
	a.offsets.Store(a.commitOffsets(ctx, b))
	a.settle(b)
	a.next()
	return nil
}

// committed waits for the offsets of the batch before and tells once what became of them.
func (a *AtLeastOnce) committed() error { return a.offsets.Swap(nil).wait() }

// revoke lets partitions go when their offsets are committed: the next owner begins there.
func (a *AtLeastOnce) revoke(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
	_ = a.offsets.Load().wait() // the lane hears of it
	a.member.revoke(ctx, client, partitions)
}

// Abort gives a batch back of which nothing was produced: the session returns to its last commit.
// The revocation that may wait for the batch is still held back while the offsets are set.
func (a *AtLeastOnce) Abort(_ context.Context, b *Batch, why error) error {
	if err := a.committed(); err != nil {
		return fmt.Errorf("give the batch back: %w", errors.Join(err, why))
	}
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
	if err := a.committed(); err != nil {
		a.opts.Logger.Warn("the last offsets are not committed: their records will be read again, and are below the fence", "error", err)
	}
	a.client.CloseAllowingRebalance()
	a.lag.stop()
}
