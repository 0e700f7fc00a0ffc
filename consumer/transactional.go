package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// ErrAborted says that a batch was given back in good order: nothing of it is visible, the session
// stands where it stood before the batch, and polling may go on.
var ErrAborted = errors.New("batch aborted")

// Transactional is a session whose forwards, fences and offsets are one Kafka transaction.
//
// The offsets come first, while the batch is claimed; see opening. From when the group's coordinator has
// taken them, nobody else is given the offsets of these partitions until the transaction ends (KIP-447). It
// takes them only from a member of the group's present generation. So who learns of a revocation afterwards may
// still commit; who has learned of one before must not, for the coordinator does not compare partitions.
type Transactional struct {
	*member
	explicit bool // the broker is told what belongs to a transaction
	fences   acks
	last     *ending       // of the transaction before
	opening  *opening      // of the batch that is claimed; nil without one
	patience time.Duration // claimPatience
	begun    bool          // the client is in a transaction
}

// JoinTransactional makes a client that joins the group in the background. The transactional ID is
// the stable member name: what its predecessor left open is aborted now.
func JoinTransactional(ctx context.Context, opts Options) (*Transactional, error) {
	explicit, err := explicitTransactions(ctx, opts.Connection)
	if err == nil {
		err = takeOver(ctx, &opts)
	}
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", opts.ConsumerGroup, err)
	}
	m := newMember(opts)
	transactional := append(opts.client(m),
		kgo.TransactionalID(opts.Member),
		kgo.TransactionTimeout(transactionTimeout))
	if explicit {
		transactional = append(transactional, kgo.MaxVersions(beforeImplicitOffsets()))
	}
	if m.client, err = kgo.NewClient(transactional...); err != nil {
		return nil, fmt.Errorf("join %s: %w", opts.ConsumerGroup, err)
	}
	m.lag = watchLag(m)
	return &Transactional{member: m, explicit: explicit, last: newEnding(m), patience: claimPatience}, nil
}

// Poll waits for the next batch; it returns nil when ctx ends. Nothing may be polled between a
// batch and its Commit or Abort.
func (t *Transactional) Poll(ctx context.Context) (*Batch, error) {
	b, err := t.poll(ctx, t.client.PollRecords)
	if b != nil {
		t.openAhead(b)
	}
	return b, err
}

// Begin comes after the claims. It returns when the transaction is open, has the batch's offsets, and its fences
// are sent, so that they travel with the forwards.
func (t *Transactional) Begin(ctx context.Context, b *Batch) error {
	if err := t.open(ctx, b); err != nil {
		return err
	}
	for _, r := range t.fenceRecords(b) {
		t.client.Produce(ctx, r, t.fences.promise)
	}
	return nil
}

// Produce sends a record within the transaction.
func (t *Transactional) Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	t.client.Produce(ctx, r, promise)
}

// Flush returns when every record that was produced is acknowledged or has failed.
func (t *Transactional) Flush(ctx context.Context) error { return t.client.Flush(ctx) }

// Commit ends the transaction. The caller has seen every forward acknowledged. With ErrAborted the
// batch was given back because of a rebalance. Any other error leaves it unknown what the broker
// decided: the session must be closed, and a new one learns the truth from the group's offsets.
func (t *Transactional) Commit(ctx context.Context, b *Batch) error {
	if err := t.client.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := t.fences.take(); err != nil {
		return t.Abort(ctx, b, fmt.Errorf("write fence: %w", err))
	}
	if t.wasTaken() {
		return t.Abort(ctx, b, ErrRevoked)
	}
	err := t.client.EndTransaction(ctx, kgo.TryCommit)
	t.last.decided = time.Now()
	crashpoint.At("transaction-ended")
	if err != nil {
		return fmt.Errorf("end transaction: %w", err)
	}
	t.begun = false
	t.settle(b)
	t.reset()
	return nil
}

// partingTimeout is how long an abort may take after the work was told to end.
const partingTimeout = 2 * time.Second

// Abort gives the batch back, whether its transaction was begun or not. An error that wraps
// ErrAborted, and why, is the good outcome; after any other error the session must be closed.
func (t *Transactional) Abort(ctx context.Context, b *Batch, why error) error {
	_ = t.opened() // if it failed, the batch is given back all the same
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), partingTimeout)
		defer cancel()
	}
	if err := t.rollBack(ctx, b); err != nil {
		return fmt.Errorf("abort transaction: %w", errors.Join(err, why))
	}
	if errors.Is(why, errRefused) && !t.wasTaken() {
		if err := t.stillAlone(ctx); err != nil {
			return fmt.Errorf("abort transaction: %w", errors.Join(err, why))
		}
	}
	t.goBack(b)
	t.reset()
	return fmt.Errorf("%w: %w", ErrAborted, why)
}

// Close leaves the group.
func (t *Transactional) Close() {
	_ = t.opened()
	t.client.CloseAllowingRebalance()
	t.lag.stop()
}
