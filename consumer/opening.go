package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// opening is the transaction of a batch before its forwards: the one before is over, and the batch's offsets are in it.
// That takes several round trips, as long as a small batch takes to be claimed. So it happens meanwhile.
type opening struct {
	claimed chan struct{} // closed when the batch is claimed, or will not be
	done    chan struct{} // closed when this is over
	err     error         // after done
}

// claimPatience is how long a transaction stays open for claims. Then it is aborted, and begun once more when the claims
// are there: a store that is down must not use up the transaction's time, nor keep the offsets of the partitions from
// another member that they are given to.
const claimPatience = 2 * time.Second

// openAhead begins the transaction of a batch that is now claimed. Only opened may be called before it is over.
func (t *Transactional) openAhead(b *Batch) {
	o := &opening{claimed: make(chan struct{}), done: make(chan struct{})}
	t.opening = o
	go func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(context.Background(), transactionTimeout)
		defer cancel()
		if o.err = t.begin(ctx, b); o.err != nil {
			return
		}
		select {
		case <-o.claimed:
		case <-time.After(t.patience):
			o.err = t.rollBack(ctx, b)
		}
	}()
}

// opened ends the opening; afterwards the session is the caller's alone.
func (t *Transactional) opened() error {
	o := t.opening
	if o == nil {
		return nil
	}
	t.opening = nil
	close(o.claimed)
	<-o.done
	return o.err
}

// open returns when the transaction has the batch's offsets.
func (t *Transactional) open(ctx context.Context, b *Batch) error {
	if err := t.opened(); err != nil {
		return err
	}
	if t.begun {
		return nil
	}
	return t.begin(ctx, b) // the claims have outlasted its patience
}

func (t *Transactional) begin(ctx context.Context, b *Batch) error {
	t.last.wait()
	if err := t.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	t.begun = true
	crashpoint.At("transaction-begun")
	if err := t.addOffsets(ctx, b); err != nil {
		return fmt.Errorf("add offsets to the transaction: %w", err)
	}
	return nil
}

// rollBack aborts the transaction if there is one. The client ends only those in which it has written records itself,
// and would let the next one go on with the offsets of this one; so a fence is written first, that of before.
func (t *Transactional) rollBack(ctx context.Context, b *Batch) error {
	if !t.begun {
		return nil
	}
	if err := t.client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	t.fences.take()
	if len(b.Spans) > 0 {
		s := &b.Spans[0]
		fence := fenceRecord(t.opts.FenceTopic, t.opts.Input, s.Partition, s.before)
		if err := t.client.ProduceSync(ctx, fence).FirstErr(); err != nil {
			return fmt.Errorf("write fence: %w", err)
		}
	}
	if err := t.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return err
	}
	t.last.decided = time.Now()
	t.begun = false
	return nil
}
