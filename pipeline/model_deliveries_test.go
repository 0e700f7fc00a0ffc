package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/consumer"
)

// modelExactlyOnce opens and ends transactions as consumer.Transactional does.
type modelExactlyOnce struct{ *modelSession }

var _ Session = modelExactlyOnce{}

// Poll implements Session. The batch's offsets go into its transaction while it is claimed: before or after. The claims
// do not wait for that.
func (s modelExactlyOnce) Poll(ctx context.Context) (*consumer.Batch, error) {
	b, err := s.modelSession.Poll(ctx)
	if b != nil && s.txnID.idle() && s.w.dice.oneIn(2) {
		s.opening = s.open(b)
	}
	return b, err
}

// open begins the transaction with the offsets. What fails is told to Begin. The producer is initialised with the first
// transaction, not when the client is made; until then the predecessor's transaction stays open.
func (s modelExactlyOnce) open(b *consumer.Batch) error {
	s.lane.pause()
	if s.w.fault(faultBegin) {
		return kerr.CoordinatorNotAvailable
	}
	s.opened = true
	return s.sendOffsets(b)
}

// Begin implements Session. If the claims took long, the transaction was aborted meanwhile, and begins anew.
func (s modelExactlyOnce) Begin(_ context.Context, b *consumer.Batch) error {
	s.must(s.attempt != nil && s.attempt.batch == b && !s.begun, "begin of a batch that is not in hand")
	s.lane.pause()
	if s.opened && s.opening == nil && s.w.dice.oneIn(4) {
		s.w.saw(sightLateClaims)
		s.opening = s.rollBack()
	}
	if !s.opened && s.opening == nil {
		s.opening = s.open(b)
	}
	if s.opening != nil {
		return s.opening
	}
	s.begun = true
	s.produceFences(b)
	return nil
}

// Commit implements Session.
func (s modelExactlyOnce) Commit(ctx context.Context, b *consumer.Batch) error {
	s.must(s.begun && s.attempt.batch == b, "commit of a batch that was not begun")
	if err := s.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if s.fenceFailed != nil {
		return s.Abort(ctx, b, s.fenceFailed)
	}
	if s.kicked {
		s.w.saw(sightZombieCommit)
	}
	if s.taken {
		return s.Abort(ctx, b, consumer.ErrRevoked)
	}
	s.lane.pause() // a revocation that comes now is not heard of
	if s.w.fault(faultEnd) {
		return s.endUnanswered()
	}
	if err := s.end(txnCommitted); err != nil {
		return err
	}
	s.committed(b)
	return nil
}

// sendOffsets adds the offsets to the transaction.
func (s modelExactlyOnce) sendOffsets(b *consumer.Batch) error {
	txn, err := s.transaction()
	switch {
	case err != nil:
		return err
	case s.w.fault(faultTxnOffsets):
		s.refused = true
		return fmt.Errorf("%w: %w", consumer.ErrRevoked, kerr.CoordinatorLoadInProgress)
	case !s.w.group.accepts(s.modelSession):
		s.refused = true
		return fmt.Errorf("%w: %w", consumer.ErrRevoked, kerr.IllegalGeneration)
	}
	for _, span := range b.Spans {
		s.w.group.seq++
		txn.offsets = append(txn.offsets, pendingOffset{span.Partition, span.Next, s.w.group.seq})
	}
	return nil
}

// end is EndTxn. Without a request that opened it there is no transaction and nothing to end.
func (s modelExactlyOnce) end(state txnState) error {
	s.lane.pause()
	switch {
	case s.txn == nil:
		return nil
	case s.epoch != s.txnID.epoch:
		return kerr.InvalidProducerEpoch
	case s.txn.state != txnOpen:
		return kerr.InvalidTxnState
	case state == txnAborted && s.w.fault(faultEnd):
		return errModelAnswer
	}
	s.w.decide(s.txn, state)
	return nil
}

// endUnanswered is an EndTxn whose outcome the client does not learn.
func (s modelExactlyOnce) endUnanswered() error {
	if s.w.dice.oneIn(2) && s.end(txnCommitted) == nil && s.txn.state == txnCommitted {
		s.w.saw(sightCommitUnknown)
	}
	return fmt.Errorf("end transaction: %w", errModelAnswer)
}

// rollBack aborts what was opened. A fence is written first, without which the client would not do so.
func (s modelExactlyOnce) rollBack() error {
	s.buffer = nil
	if !s.opened {
		return nil
	}
	if s.w.fault(faultProduce) {
		return errModelProduce
	}
	if err := s.end(txnAborted); err != nil {
		return err
	}
	s.opened, s.txn = false, nil
	return nil
}

// Abort implements Session.
func (s modelExactlyOnce) Abort(_ context.Context, b *consumer.Batch, why error) error {
	s.must(s.attempt != nil, "abort without a batch")
	s.w.saw(sightGivenBack)
	s.w.trace(s.lane.slot, "aborts %v: %v", s.attempt, why)
	if err := s.rollBack(); err != nil {
		return fmt.Errorf("abort transaction: %w", errors.Join(err, why))
	}
	if s.refused && !s.taken {
		if err := s.stillAlone(); err != nil {
			return err
		}
	}
	s.goBack()
	s.reset()
	return fmt.Errorf("%w: %w", consumer.ErrAborted, why)
}

// stillAlone asks the group, once it can tell.
func (s modelExactlyOnce) stillAlone() error {
	for p := range s.held {
		if !s.held[p].known {
			continue
		}
		s.lane.wait(func() bool { return s.w.stable(int32(p)) })
		if at := s.w.group.committed[p].next; s.held[p].known && at > s.held[p].committed {
			return fmt.Errorf("partition %d is at %d: the group has gone on without this member", p, at)
		}
	}
	return nil
}

// committed ends a batch in good order.
func (s *modelSession) committed(b *consumer.Batch) {
	for _, span := range b.Spans {
		h := &s.held[span.Partition]
		if h.committed = span.Next; h.fenceKnown {
			h.fence = span.Fence()
		}
	}
	s.lane.count(s.attempt)
	s.w.trace(s.lane.slot, "committed %v", s.attempt)
	s.reset()
}
