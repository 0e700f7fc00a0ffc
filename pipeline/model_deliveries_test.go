package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/consumer"
)

// modelExactlyOnce ends batches as consumer.Transactional does with kgo.GroupTransactSession.End.
type modelExactlyOnce struct{ *modelSession }

// modelAtLeastOnce ends batches as consumer.AtLeastOnce does.
type modelAtLeastOnce struct{ *modelSession }

var (
	_ Session = modelExactlyOnce{}
	_ Session = modelAtLeastOnce{}
)

// Begin implements Session. The producer is initialised with the first transaction, not when the
// client is made; until then the predecessor's transaction stays open.
func (s modelExactlyOnce) Begin(_ context.Context, b *consumer.Batch) error {
	s.must(s.attempt != nil && s.attempt.batch == b && !s.begun, "begin of a batch that is not in hand")
	s.lane.pause()
	if s.w.fault(faultBegin) {
		return kerr.CoordinatorNotAvailable
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
	taken := s.taken
	s.lane.pause()
	if s.kicked {
		s.w.saw(sightZombieCommit)
	}
	ok, err := s.sendOffsets(b)
	if err != nil {
		_ = s.end(txnAborted)
		return err
	}
	s.ending = true
	defer func() { s.ending = false }()
	if s.taken || !ok {
		if err := s.end(txnAborted); err != nil {
			return err
		}
		return s.notCommitted(b, taken)
	}
	if s.w.fault(faultEnd) {
		return s.endUnanswered(b, taken)
	}
	if err := s.end(txnCommitted); err != nil {
		return err
	}
	s.committed(b)
	return nil
}

// sendOffsets adds the offsets to the transaction; false asks for an abort. The heartbeat that the
// client forces afterwards shows whether the group still counts on the member.
func (s modelExactlyOnce) sendOffsets(b *consumer.Batch) (ok bool, err error) {
	switch {
	case s.taken, s.w.fault(faultTxnOffsets):
		return false, nil
	case s.epoch != s.txnID.epoch:
		return false, kerr.InvalidProducerEpoch
	case !s.w.group.accepts(s.modelSession):
		return false, nil // ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID
	}
	txn, err := s.transaction()
	if err != nil {
		return false, err
	}
	for _, span := range b.Spans {
		s.w.group.seq++
		txn.offsets = append(txn.offsets, pendingOffset{span.Partition, span.Next, s.w.group.seq})
	}
	s.lane.pause()
	if s.w.fault(faultHeartbeat) || s.kicked && s.w.dice.oneIn(2) {
		return false, nil
	}
	return true, nil
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

// endUnanswered is an EndTxn whose outcome the client does not learn. After UNKNOWN_SERVER_ERROR it
// reports "not committed" without an error, and initialises its producer anew, which aborts the
// transaction if it was not decided.
func (s modelExactlyOnce) endUnanswered(b *consumer.Batch, taken bool) error {
	var err error
	if s.w.dice.oneIn(2) {
		err = s.end(txnCommitted)
	}
	if s.txn.state == txnCommitted {
		s.w.saw(sightCommitUnknown)
	}
	if err != nil || s.w.dice.oneIn(2) {
		return fmt.Errorf("end transaction: %w", errModelAnswer)
	}
	s.w.trace(s.lane.slot, "end of the transaction answered with UNKNOWN_SERVER_ERROR")
	if s.epoch != s.txnID.epoch {
		return kerr.InvalidProducerEpoch
	}
	s.initProducer()
	return s.notCommitted(b, taken)
}

// notCommitted asks the group, unless a revocation kept the client from trying.
func (s modelExactlyOnce) notCommitted(b *consumer.Batch, taken bool) error {
	s.goBack()
	s.ending = false
	for _, span := range b.Spans {
		if taken {
			break
		}
		s.lane.wait(func() bool { return s.w.stable(span.Partition) })
		if at := s.w.group.committed[span.Partition].next; at >= span.Next {
			return fmt.Errorf("partition %d is at %d: the outcome of the commit is unknown", span.Partition, at)
		}
	}
	s.reset()
	return fmt.Errorf("end transaction: %w: %w", consumer.ErrAborted, consumer.ErrRevoked)
}

// Abort implements Session.
func (s modelExactlyOnce) Abort(_ context.Context, _ *consumer.Batch, why error) error {
	s.must(s.attempt != nil, "abort without a batch")
	s.w.saw(sightGivenBack)
	s.w.trace(s.lane.slot, "aborts %v: %v", s.attempt, why)
	s.buffer = nil
	if err := s.end(txnAborted); err != nil {
		return fmt.Errorf("abort transaction: %w", errors.Join(err, why))
	}
	s.goBack()
	s.reset()
	return fmt.Errorf("%w: %w", consumer.ErrAborted, why)
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

// Begin implements Session.
func (s modelAtLeastOnce) Begin(_ context.Context, b *consumer.Batch) error {
	s.must(s.attempt != nil && s.attempt.batch == b && !s.begun, "begin of a batch that is not in hand")
	s.begun = true
	return nil
}

// Commit implements Session: fences, then offsets.
func (s modelAtLeastOnce) Commit(ctx context.Context, b *consumer.Batch) error {
	s.must(s.begun && s.attempt.batch == b, "commit of a batch that was not begun")
	s.produceFences(b)
	if err := s.Flush(ctx); err != nil {
		return fmt.Errorf("flush fences: %w", err)
	}
	if s.fenceFailed != nil {
		return fmt.Errorf("write fence: %w", s.fenceFailed)
	}
	s.lane.pause()
	lost := s.w.fault(faultCommit)
	if lost && s.w.dice.oneIn(2) {
		return errModelAnswer
	}
	if !s.w.group.accepts(s.modelSession) {
		s.w.saw(sightZombieCommit)
		return kerr.IllegalGeneration
	}
	for _, span := range b.Spans {
		s.w.group.seq++
		s.w.group.store(pendingOffset{span.Partition, span.Next, s.w.group.seq})
	}
	s.w.settle(s.attempt)
	if lost {
		return errModelAnswer
	}
	s.lane.pause()
	s.committed(b)
	return nil
}

// Abort implements Session. What was produced is not taken back.
func (s modelAtLeastOnce) Abort(_ context.Context, _ *consumer.Batch, why error) error {
	s.must(s.attempt != nil, "abort without a batch")
	s.w.saw(sightGivenBack)
	s.w.trace(s.lane.slot, "gives back %v: %v", s.attempt, why)
	s.lane.pause()
	s.goBack()
	s.reset()
	return fmt.Errorf("%w: %w", consumer.ErrAborted, why)
}
