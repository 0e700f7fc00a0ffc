package pipeline

import (
	"context"
	"errors"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
)

// modelSession is what both kinds of session share: a member of the group with its producer. It does
// what the sessions of package consumer do, on the model of Kafka instead of on a client.
type modelSession struct {
	w    *modelWorld
	lane *modelLane

	// As the group's coordinator sees it.
	generation int  // the last that it heard of; -1 before the first
	kicked     bool // given up by the coordinator, and does not know it
	dead       bool // closed, or its process died

	held        []heldPartition // by partition
	taken       bool            // partitions were taken away since the last batch ended
	busy        bool            // records were polled and not committed or given back
	attempt     *modelAttempt   // the batch in hand
	revoked     context.Context
	interrupt   context.CancelCauseFunc
	interrupted bool // the batch is to be interrupted; the store wrapper delivers it

	buffer      []modelPending
	fenceFailed error
	commit      *modelCommit // at_least_once: of the batch before, until the lane hears of it

	txnID *modelTxnID
	epoch int
	begun bool
	txn   *modelTxn

	opened  bool  // the client is in a transaction
	opening error // of the transaction with the batch's offsets, for Begin
	refused bool  // the group did not take the offsets
}

// modelPending is a record that was handed to the producer and not sent yet.
type modelPending struct {
	topic     string
	partition int32
	entry     *modelEntry
	promise   func(error)
}

var (
	errModelFetch   = errors.New("model: fetch failed")
	errModelProduce = errors.New("model: record was not acknowledged")
	errModelAnswer  = errors.New("model: no answer")
)

// interruptBatch ends the claims of the batch in hand. The context of a batch is cancelled by a
// goroutine of its own: the bubble waits for it, or the run could not be replayed.
func (s *modelSession) interruptBatch() {
	s.interrupted = true
	if s.interrupt != nil && s.attempt != nil {
		s.interrupt(consumer.ErrRevoked)
		synctest.Wait()
	}
}

// reset ends a batch, committed or given back.
func (s *modelSession) reset() {
	s.taken, s.interrupted, s.busy, s.attempt, s.begun, s.txn = false, false, false, nil, false, nil
	s.fenceFailed, s.opened, s.opening, s.refused = nil, false, nil, false
}

// goBack has the client deliver the batch again.
func (s *modelSession) goBack() {
	for p := range s.held {
		s.held[p].position = s.held[p].committed
	}
}

// Poll implements Session. Offsets are fetched as stable (RequireStable is always on in the client);
// fences are read after the first records, so a revocation may come in between.
func (s *modelSession) Poll(ctx context.Context) (*consumer.Batch, error) {
	s.must(s.attempt == nil, "poll with a batch in hand")
	for {
		s.lane.wait(func() bool { return ctx.Err() != nil || s.commit.failed() || s.canPoll() })
		if ctx.Err() != nil || s.commit.failed() {
			return nil, s.heard()
		}
		if s.w.fault(faultPoll) {
			return nil, errModelFetch
		}
		s.fetchOffsets()
		s.lane.pause()
		fetches := s.fetch()
		if len(fetches) == 0 {
			continue
		}
		s.busy = true
		if err := s.readFences(ctx); err != nil {
			return nil, err
		}
		return s.newBatch(fetches), nil
	}
}

func (s *modelSession) canPoll() bool {
	for p := range s.held {
		if h := &s.held[p]; h.assigned && (!h.known && s.w.stable(int32(p)) || s.canFetch(p)) {
			return true
		}
	}
	return false
}

func (s *modelSession) canFetch(partition int) bool {
	h := &s.held[partition]
	return h.assigned && h.known && h.position < s.w.input[partition].end
}

func (s *modelSession) fetchOffsets() {
	for p := range s.held {
		if h := &s.held[p]; h.assigned && !h.known && s.w.stable(int32(p)) {
			at := max(0, s.w.group.committed[p].next)
			h.known, h.position, h.committed = true, at, at
			s.w.trace(s.lane.slot, "partition %d begins at %d", p, at)
		}
	}
}

// fetch takes some records of some partitions.
func (s *modelSession) fetch() kgo.Fetches {
	topic := kgo.FetchTopic{Topic: modelInput, TopicID: modelTopicID}
	room := 1 + s.w.dice.n(s.w.mix.batch)
	first := s.w.dice.n(len(s.held))
	for i := range s.held {
		p := (first + i) % len(s.held)
		if !s.canFetch(p) || room == 0 || len(topic.Partitions) > 0 && s.w.dice.oneIn(3) {
			continue
		}
		sources := s.w.input[p].from(s.held[p].position)
		sources = sources[:min(len(sources), 1+s.w.dice.n(room))]
		if len(sources) == 0 {
			continue // only a gap is left
		}
		part := kgo.FetchPartition{Partition: int32(p)}
		for _, source := range sources {
			part.Records = append(part.Records, source.record)
		}
		room -= len(sources)
		s.held[p].position = sources[len(sources)-1].record.Offset + 1
		topic.Partitions = append(topic.Partitions, part)
	}
	if len(topic.Partitions) == 0 {
		return nil
	}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{topic}}}
}

func (s *modelSession) readFences(ctx context.Context) error {
	for p := range s.held {
		h := &s.held[p]
		if !h.assigned || h.fenceKnown {
			continue
		}
		s.lane.wait(func() bool { return ctx.Err() != nil || s.w.fenceStable(int32(p)) })
		if ctx.Err() != nil || s.w.fault(faultReadFence) {
			return errModelFetch
		}
		if h.assigned && !h.fenceKnown { // not taken away meanwhile
			h.fence, h.fenceKnown = s.w.lastFence(int32(p)), true
			s.w.trace(s.lane.slot, "fence of partition %d is at %d", p, h.fence.Next())
		}
	}
	return nil
}

func (s *modelSession) newBatch(fetches kgo.Fetches) *consumer.Batch {
	fences := make(map[int32]consumer.Fence)
	for p := range s.held {
		if s.held[p].fenceKnown {
			fences[int32(p)] = s.held[p].fence
		}
	}
	s.revoked, s.interrupt = context.WithCancelCause(context.Background())
	b := consumer.NewBatch(fetches, fences, s.revoked)
	s.attempt = s.w.newAttempt(s, b)
	s.w.trace(s.lane.slot, "polls %v", s.attempt)
	return b
}

// Joined implements Session.
func (s *modelSession) Joined() bool { return s.generation >= 0 }

// Close implements Session. Requests that are under way may still arrive; an open transaction stays
// open. A process that dies closes nothing.
func (s *modelSession) Close() {
	if s.lane.dying || s.w.failed {
		return
	}
	s.lane.pause()
	s.land()
	s.die()
	if !s.w.fault(faultLeave) {
		s.w.group.remove(s)
	}
	s.lane.session = nil
	s.w.trace(s.lane.slot, "closes its session")
}

// die leaves what was on its way to the brokers to chance.
func (s *modelSession) die() {
	s.dead = true
	if s.w.dice.oneIn(2) {
		s.land()
	}
	for len(s.buffer) > 0 && s.w.dice.oneIn(2) {
		if s.w.mix.transactional && (s.txn == nil || s.txn.state != txnOpen) {
			break
		}
		s.send(s.nextRun(), nil)
	}
	s.buffer = nil
}

func (s *modelSession) must(ok bool, rule string) {
	if !ok {
		s.w.failf("the lane broke the contract of a session: %s", rule)
	}
}
