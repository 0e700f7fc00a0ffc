package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/crashpoint"
	"github.com/kdedup/kdedup/internal/pause"
)

// ErrAborted says that a batch was given back in good order: nothing of it is visible, the session
// stands where it stood before the batch, and polling may go on.
var ErrAborted = errors.New("batch aborted")

// Transactional is a session whose forwards, fences and offsets are one Kafka transaction.
//
// The offsets come first, while the batch is claimed; see opening. From when the group's
// coordinator has taken them, nobody else is given the offsets of these partitions until the
// transaction ends (KIP-447). It takes them only from a member of the group's present generation.
// So a member that learns of a revocation afterwards may still commit; one that has learned of it
// before must not, for the coordinator does not compare partitions.
type Transactional struct {
	*member
	kafka    TransactionalClient
	fences   acks
	patience time.Duration // claimPatience
	markers  time.Duration // markersTimeout

	opening *opening  // of the batch that is claimed; nil without one
	started time.Time // when the forwards of the batch in hand began; zero before
	// While there is an opening, these are its goroutine's; otherwise they are the lane's.
	begun   bool      // the client is in a transaction
	since   time.Time // when it began
	decided time.Time // when the broker answered the end of the last transaction
}

// NewTransactional makes a session with the client that connect returns.
func NewTransactional(
	opts Options, connect func(Events) (TransactionalClient, error),
) (*Transactional, error) {
	m := newMember(opts)
	client, err := connect(groupEvents{m})
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", opts.ConsumerGroup, err)
	}
	m.client = client
	m.lag = watchLag(m)
	return &Transactional{member: m, kafka: client, patience: claimPatience,
		markers: markersTimeout}, nil
}

// Poll waits for the next batch; it returns nil when ctx ends. Nothing may be polled between a
// batch and its Commit or Abort.
func (t *Transactional) Poll(ctx context.Context) (*Batch, error) {
	b, err := t.poll(ctx)
	if b != nil {
		t.openAhead(b)
	}
	return b, err
}

// Begin comes after the claims. It returns when the transaction is open, has the batch's offsets,
// and its fences are sent, so that they travel with the forwards.
func (t *Transactional) Begin(ctx context.Context, b *Batch) error {
	if err := t.endOpening(); err != nil {
		return err
	}
	if !t.begun { // the claims have outlasted its patience
		if err := t.begin(ctx, b); err != nil {
			return err
		}
	}
	t.started = time.Now()
	for _, r := range t.fenceRecords(b) {
		t.kafka.Produce(ctx, r, t.fences.promise)
	}
	return nil
}

// Produce sends a record within the transaction.
func (t *Transactional) Produce(
	ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error),
) {
	t.kafka.Produce(ctx, r, promise)
}

// ErrSlow says that a batch did not get through while there was time to give it back in good order.
var ErrSlow = errors.New("the brokers take longer than a batch has time: they are busy, or a " +
	"quota throttles this client")

// Flush returns when every record that was produced is acknowledged or has failed. A third of the
// transaction's time is left for its end, or for giving the batch back.
func (t *Transactional) Flush(ctx context.Context) error {
	ctx, cancel := context.WithDeadlineCause(ctx, t.started.Add(t.opts.TransactionTimeout*2/3),
		ErrSlow)
	defer cancel()
	err := t.kafka.Flush(ctx)
	if errors.Is(context.Cause(ctx), ErrSlow) && err != nil {
		return ErrSlow
	}
	return err
}

// Undoes says that what was produced for a batch that is given back is never visible.
func (t *Transactional) Undoes() bool { return true }

// Until is early enough for what is left to do, and to abort.
func (t *Transactional) Until() time.Time { return t.since.Add(t.opts.TransactionTimeout / 2) }

// Commit ends the transaction. The caller has seen every forward acknowledged. With ErrAborted the
// batch was given back because of a rebalance. Any other error leaves it unknown what the broker
// decided: the session must be closed, and a new one learns the truth from the group's offsets.
func (t *Transactional) Commit(ctx context.Context, b *Batch) error {
	if err := t.Flush(ctx); err != nil {
		return t.Abort(ctx, b, fmt.Errorf("flush: %w", err))
	}
	if err := t.fences.take(); err != nil {
		return t.Abort(ctx, b, fmt.Errorf("write fence: %w", err))
	}
	if t.wasTaken() {
		return t.Abort(ctx, b, ErrRevoked)
	}
	err := t.kafka.End(ctx, true)
	t.decided = time.Now()
	crashpoint.At("transaction-ended")
	t.timed(b, err == nil)
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
	_ = t.endOpening() // if it failed, the batch is given back all the same
	if errors.Is(why, ErrMarkersLost) {
		return fmt.Errorf("abort transaction: %w", why)
	}
	t.timed(b, false)
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

// timed has the next batches be as large as this one shows that they may be. A batch that failed
// early says nothing.
func (t *Transactional) timed(b *Batch, committed bool) {
	if t.started.IsZero() {
		return
	}
	took := time.Since(t.started)
	t.started = time.Time{}
	switch {
	case committed:
		t.opts.Limit.finished(b.amount, took)
	case took > t.opts.TransactionTimeout/2:
		t.opts.Limit.timedOut(b.amount)
		t.opts.Logger.Warn("a batch did not get through in transaction_timeout: the next ones "+
			"are smaller, until the brokers are faster",
			"timeout", t.opts.TransactionTimeout, "records", b.amount.records,
			"bytes", b.amount.bytes)
	}
}

// Close leaves the group.
func (t *Transactional) Close() {
	_ = t.endOpening()
	t.client.Close()
	t.lag.stop()
}

// opening is the transaction of a batch before its forwards: the one before is over, and the
// batch's offsets are in it. That takes several round trips, as long as a small batch takes to be
// claimed. So it happens meanwhile.
type opening struct {
	claimed chan struct{} // closed when the batch is claimed, or will not be
	done    chan struct{} // closed when this is over
	err     error         // after done
}

// claimPatience is how long a transaction stays open for claims. Then it is aborted, and begun once
// more when the claims are there: a store that is down must not use up the transaction's time, nor
// keep the offsets of the partitions from another member that they are given to.
const claimPatience = 2 * time.Second

// openAhead begins the transaction of a batch that is now claimed. endOpening waits for its
// goroutine.
func (t *Transactional) openAhead(b *Batch) {
	o := &opening{claimed: make(chan struct{}), done: make(chan struct{})}
	t.opening = o
	go func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(context.Background(), t.opts.TransactionTimeout)
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

// endOpening tells the opening that the claims are there, or will not be, and returns its error
// when it is over.
func (t *Transactional) endOpening() error {
	o := t.opening
	if o == nil {
		return nil
	}
	t.opening = nil
	close(o.claimed)
	<-o.done
	return o.err
}

func (t *Transactional) begin(ctx context.Context, b *Batch) error {
	t.awaitMarkers()
	if err := t.kafka.Begin(ctx); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	t.begun, t.since = true, time.Now()
	crashpoint.At("transaction-begun")
	if len(b.Spans) == 0 {
		return nil
	}
	err := t.kafka.AddOffsets(ctx, b.topicID(), b.offsets())
	switch {
	case err == nil:
		return nil
	case isRefusal(err):
		err = fmt.Errorf("%w: %w: %w", errRefused, ErrRevoked, err)
	default:
		err = inputError(err)
	}
	return fmt.Errorf("add offsets to the transaction: %w", err)
}

const (
	// markersTimeout is how long after the end of a transaction its markers are waited for. Usually
	// they take a few milliseconds.
	markersTimeout = 50 * time.Millisecond
	markersPause   = time.Millisecond
)

var errUnmarked = errors.New("the markers of the last transaction are not written yet")

// awaitMarkers returns when the markers of the transaction before are written, or when nothing will
// be known about them.
//
// The broker answers a commit before its markers are on all partitions. A broker that is asked to
// write for the next transaction before they are tries again 20 ms later
// (add.partitions.to.txn.retry.backoff.ms; before Kafka 4.0 the client does), which is longer than
// a small batch takes as a whole. So the coordinator is asked first. If it answers late, not at
// all, or not to this user (DESCRIBE on the transactional ID comes with WRITE), that delay is what
// remains.
func (t *Transactional) awaitMarkers() {
	deadline := t.decided.Add(t.markers)
	if time.Now().After(deadline) {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	unmarked := func(err error) bool { return errors.Is(err, errUnmarked) }
	_ = pause.Repeat(ctx, markersPause, unmarked, func() error { // the next write meets the error
		marked, err := t.kafka.Marked(ctx)
		if err == nil && !marked {
			return errUnmarked
		}
		return err
	})
}

// rollBack aborts the transaction if there is one. The client ends only those in which it has
// written records itself, and would let the next one go on with the offsets of this one; so a fence
// is written first, that of before.
func (t *Transactional) rollBack(ctx context.Context, b *Batch) error {
	if !t.begun {
		return nil
	}
	if err := t.kafka.Discard(ctx); err != nil {
		return err
	}
	t.fences.take()
	if len(b.Spans) > 0 {
		s := &b.Spans[0]
		before := fence.Record(t.opts.FenceTopic, t.opts.Input, s.Partition, s.before)
		t.kafka.Produce(ctx, before, t.fences.promise)
		if err := errors.Join(t.kafka.Flush(ctx), t.fences.take()); err != nil {
			return fmt.Errorf("write fence: %w", err)
		}
	}
	if err := t.kafka.End(ctx, false); err != nil {
		return err
	}
	t.decided = time.Now()
	t.begun = false
	return nil
}

// errRefused says that the group's coordinator did not take the offsets of a batch: it has another
// generation in mind, moves, or cannot tell. Usually a rebalance has begun, and the batch can be
// given back. But the group may also have given this member up, and others have gone on with its
// partitions; until the client hears of that, it would poll what they have handled, and claim it.
var errRefused = errors.New("the offsets were refused")

func isRefusal(err error) bool {
	for _, refusal := range Refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// Refusals are the errors with which a coordinator refuses a batch's offsets, and which the next
// batch need not meet.
var Refusals = []*kerr.Error{
	kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.StaleMemberEpoch, kerr.GroupIDNotFound,
	kerr.RebalanceInProgress,
	kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator,
	kerr.ConcurrentTransactions, kerr.UnknownServerError, kerr.TransactionAbortable,
}

// stillAlone returns nil if nobody else has committed offsets of this session's partitions since it
// began with them. It looks at all partitions: a member that has gone on with one of them goes on
// with the others next.
func (t *Transactional) stillAlone(ctx context.Context) error {
	offsets, err := t.stableOffsets(ctx)
	if err != nil {
		return err
	}
	client := t.kafka.Committed()
	for _, p := range t.owned() {
		mine, known := t.position(client, p)
		at, ok := offsets[p]
		switch {
		case !known:
		case !ok || at.Offset < 0 && mine > 0:
			return fmt.Errorf("no offset of partition %d: %w", p, errGoneOn)
		case at.Offset > mine:
			return fmt.Errorf("partition %d is at %d, not at %d: %w", p, at.Offset, mine, errGoneOn)
		}
	}
	return nil
}

var errGoneOn = errors.New("the group has gone on without this member")
