package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// AtLeastOnce is a session without transactions: forwards first, then fences, then offsets. A crash
// between the first acknowledged forward and the fence repeats forwards; nothing is ever lost.
//
// The fences settle a batch. Its offsets are committed while the next batch is polled and claimed;
// if they are not, what is delivered again is below the fence. Nothing else is forwarded before the
// group has taken them.
//
// A rebalance waits until the batch in hand is committed, so that a batch that was forwarded in
// part is not forwarded by the next owner too. A batch that still waits for claims is given back.
type AtLeastOnce struct {
	*member
	fences  acks
	started time.Time // when the forwards of the batch in hand began
	// of the batch before; nil when the lane knows what became of it
	offsets atomic.Pointer[offsetCommit]
}

// NewAtLeastOnce makes a session with the client that connect returns. The client has rebalances
// wait from each poll until AllowRebalance.
func NewAtLeastOnce(opts Options, connect func(Events) (Client, error)) (*AtLeastOnce, error) {
	a := &AtLeastOnce{member: newMember(opts)}
	// if they are refused, the lane hears of it
	a.awaitOffsets = func() { _ = a.offsets.Load().wait() }
	client, err := connect(groupEvents{a.member})
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
	batch, err := a.poll(polling)
	if batch != nil {
		return batch, err
	}
	a.client.AllowRebalance()
	return nil, errors.Join(err, a.committed())
}

// Begin returns when the offsets of the batch before are committed: a member that the group has
// given up forwards no more.
func (a *AtLeastOnce) Begin(context.Context, *Batch) error {
	a.started = time.Now()
	return a.committed()
}

// Produce sends a record with the idempotent producer.
func (a *AtLeastOnce) Produce(
	ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error),
) {
	a.client.Produce(ctx, r, promise)
}

// Flush returns when every record that was produced is acknowledged or has failed.
func (a *AtLeastOnce) Flush(ctx context.Context) error { return a.client.Flush(ctx) }

// Undoes says that what was produced for a batch stays when it is given back.
func (a *AtLeastOnce) Undoes() bool { return false }

// Until says that there is no hurry.
func (a *AtLeastOnce) Until() time.Time { return time.Time{} }

// Commit writes the fences, waits for them and sends the offsets. What becomes of these is told by
// the next Poll, Begin or Abort. After an error, here or there, the session must be closed: the
// member may have lost its partitions. The next owner finds the fences.
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
	a.opts.Limit.finished(b.amount, time.Since(a.started))
	commit := newOffsetCommit()
	a.offsets.Store(commit)
	a.client.Commit(ctx, b.offsets(), commit.end)
	a.settle(b)
	a.next()
	return nil
}

// committed waits for the offsets of the batch before and tells once what became of them. Until
// then a revocation finds them, and waits as well.
func (a *AtLeastOnce) committed() error {
	err := a.offsets.Load().wait()
	a.offsets.Store(nil)
	return err
}

// Abort gives a batch back of which nothing was produced, or whose caller knows what was: the
// session goes back to where it begins. The revocation that may wait for the batch is still held
// back while the offsets are set.
func (a *AtLeastOnce) Abort(_ context.Context, b *Batch, why error) error {
	if err := a.committed(); err != nil {
		return fmt.Errorf("give the batch back: %w", errors.Join(err, why))
	}
	a.goBack(b)
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
		a.opts.Logger.Warn("the last offsets are not committed: their records will be read "+
			"again, and are below the fence", "error", err)
	}
	a.client.Close()
	a.lag.stop()
}

// offsetCommit is a commit of offsets that is under way. A nil one has succeeded.
type offsetCommit struct {
	done   chan struct{}
	err    error           // after done
	failed context.Context // ends with err, if there is one
	fail   context.CancelCauseFunc
}

func newOffsetCommit() *offsetCommit {
	c := &offsetCommit{done: make(chan struct{})}
	c.failed, c.fail = context.WithCancelCause(context.Background())
	return c
}

// end is told what became of the commit.
func (c *offsetCommit) end(err error) {
	if err != nil {
		c.err = fmt.Errorf("commit offsets: %w", inputError(err))
		c.fail(c.err)
	}
	close(c.done)
}

// wait returns what became of the commit.
func (c *offsetCommit) wait() error {
	if c == nil {
		return nil
	}
	<-c.done
	return c.err
}

// unlessFailed returns a context that ends with parent, or when the commit fails.
func (c *offsetCommit) unlessFailed(parent context.Context) (context.Context, context.CancelFunc) {
	if c == nil {
		return context.WithCancel(parent)
	}
	return endingWith(parent, c.failed)
}
