package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// ErrAborted says that a batch was given back in good order: nothing of it is visible, the session
// stands where it stood before the batch, and polling may go on.
var ErrAborted = errors.New("batch aborted")

// Transactional is a session whose forwards, fences and offsets are one Kafka transaction.
type Transactional struct {
	*member
	session *kgo.GroupTransactSession
	fences  acks
	last    *ending // of the transaction before
}

// JoinTransactional makes a client that joins the group in the background. The transactional ID is
// the stable member name: what its predecessor left open is aborted now.
func JoinTransactional(ctx context.Context, opts Options) (*Transactional, error) {
	if err := takeOver(ctx, &opts); err != nil {
		return nil, fmt.Errorf("join %s: %w", opts.ConsumerGroup, err)
	}
	m := newMember(opts)
	session, err := kgo.NewGroupTransactSession(append(opts.client(m),
		kgo.TransactionalID(opts.Member),
		kgo.TransactionTimeout(transactionTimeout))...)
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", opts.ConsumerGroup, err)
	}
	m.client = session.Client()
	m.lag = watchLag(m)
	return &Transactional{member: m, session: session, last: newEnding(m)}, nil
}

// Poll waits for the next batch; it returns nil when ctx ends. Nothing may be polled between a
// batch and its Commit or Abort: the transaction commits all that was polled.
func (t *Transactional) Poll(ctx context.Context) (*Batch, error) {
	b, err := t.poll(ctx, t.session.PollRecords)
	if b != nil {
		t.last.watch() // while the batch is claimed
	}
	return b, err
}

// Begin opens the transaction and sends the batch's fences, so that they travel with the forwards.
// It comes after the claims: a slow store does not use up the transaction's time.
func (t *Transactional) Begin(ctx context.Context, b *Batch) error {
	t.last.wait()
	if err := t.session.Begin(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	crashpoint.At("transaction-begun")
	for _, r := range t.fenceRecords(b) {
		t.session.Produce(ctx, r, t.fences.promise)
	}
	return nil
}

// Produce sends a record within the transaction.
func (t *Transactional) Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	t.session.Produce(ctx, r, promise)
}

// Flush returns when every record that was produced is acknowledged or has failed.
func (t *Transactional) Flush(ctx context.Context) error { return t.client.Flush(ctx) }

// Commit ends the transaction. The caller has seen every forward acknowledged. With ErrAborted the
// batch was given back because of a rebalance. Any other error leaves it unknown what the broker
// decided: the session must be closed, and a new one learns the truth from the group's offsets.
// The session rewinds itself to offsets it remembers, which are wrong if the commit did happen.
func (t *Transactional) Commit(ctx context.Context, b *Batch) error {
	if err := t.client.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := t.fences.take(); err != nil {
		return t.Abort(ctx, b, fmt.Errorf("write fence: %w", err))
	}
	taken := t.wasTaken()
	committed, err := t.session.End(ctx, kgo.TryCommit)
	t.last.decided = time.Now()
	crashpoint.At("transaction-ended")
	switch {
	case errors.Is(err, kerr.TransactionAbortable): // also if an output topic was recreated
		return fmt.Errorf("end transaction: %w", err)
	case err != nil:
		return fmt.Errorf("end transaction: %w", inputError(err))
	case !committed:
		return t.notCommitted(ctx, b, taken)
	}
	t.settle(b)
	t.reset()
	return nil
}

// notCommitted decides what it means that the client reports no commit and no error. After a
// revocation it never tried one. Otherwise a coordinator refused, usually because a rebalance has
// begun; but the client also reports it when the broker answered the commit with an error that
// leaves the outcome open. Then the group's offsets tell.
func (t *Transactional) notCommitted(ctx context.Context, b *Batch, taken bool) error {
	if !taken {
		if err := t.stillBefore(ctx, b); err != nil {
			return fmt.Errorf("end transaction: %w", err)
		}
	}
	t.giveBack(b)
	t.reset()
	return fmt.Errorf("end transaction: %w: %w", ErrAborted, ErrRevoked)
}

// stillBefore returns nil if the group's offsets are below the batch. It waits for the marker of a
// transaction that is still ending, this one for example.
func (t *Transactional) stillBefore(ctx context.Context, b *Batch) error {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	unstable := func(err error) bool { return errors.Is(err, kerr.UnstableOffsetCommit) }
	return repeat(ctx, retryUnstable, unstable, func() error { return t.compareOffsets(ctx, b) })
}

const retryUnstable = 20 * time.Millisecond

func (t *Transactional) compareOffsets(ctx context.Context, b *Batch) error {
	offsets, err := kadm.NewClient(t.client).FetchOffsetsForTopics(kadm.RequireStable(ctx), t.opts.ConsumerGroup, t.opts.Input)
	if err != nil {
		return fmt.Errorf("not committed; fetch offsets: %w", err)
	}
	for _, s := range b.Spans {
		at, ok := offsets.Lookup(t.opts.Input, s.Partition)
		switch {
		case !ok:
			return fmt.Errorf("no offset of partition %d: %w", s.Partition, errUnknownCommit)
		case at.Err != nil:
			return fmt.Errorf("not committed; offset of partition %d: %w", s.Partition, at.Err)
		case at.At >= s.Next:
			return fmt.Errorf("partition %d is at %d: %w", s.Partition, at.At, errUnknownCommit)
		}
	}
	return nil
}

var errUnknownCommit = errors.New("the outcome of the commit is unknown")

// Abort gives the batch back, whether its transaction was begun or not. An error that wraps
// ErrAborted, and why, is the good outcome; after any other error the session must be closed.
func (t *Transactional) Abort(ctx context.Context, b *Batch, why error) error {
	if _, err := t.session.End(ctx, kgo.TryAbort); err != nil {
		return fmt.Errorf("abort transaction: %w", errors.Join(err, why))
	}
	t.last.decided = time.Now()
	t.fences.take()
	t.giveBack(b)
	t.reset()
	return fmt.Errorf("%w: %w", ErrAborted, why)
}

// Close leaves the group.
func (t *Transactional) Close() {
	t.last.wait()
	t.session.CloseAllowingRebalance()
	t.lag.stop()
}
