package pipeline

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
)

// modelEntry is a record on one of the topics that the pipeline writes.
type modelEntry struct {
	record  *kgo.Record
	fence   consumer.Fence // on the fence topic, instead of a record
	source  *modelSource
	attempt *modelAttempt
	txn     *modelTxn // nil outside of transactions
}

// visible is what a reader with read_committed gets once the markers are written.
func (e *modelEntry) visible() bool { return e.txn == nil || e.txn.state == txnCommitted }

// modelTopic is the log of one topic, by partition, in the order of appends. A transaction's records
// stand where they were appended, also if it is committed later.
type modelTopic [][]*modelEntry

const (
	topicClean      = "orders.clean"
	topicDuplicates = "orders.duplicates"
	topicDead       = "orders.dlq"
	topicFence      = "orders-dedup.fence"
)

type txnState uint8

const (
	txnOpen txnState = iota
	txnCommitted
	txnAborted
)

// modelTxn is a transaction as the brokers know it. It is decided first (TransactionCoordinator:
// PrepareCommit, PrepareAbort), and its markers are written later, those of the offsets apart from
// those of the topics. Until then readers with read_committed stop before its first record (the last
// stable offset), and fetches of stable offsets wait (KIP-447).
type modelTxn struct {
	id          *modelTxnID
	attempt     *modelAttempt
	state       txnState
	marked      bool // on the topics
	offsetsDone bool
	offsets     []pendingOffset
	fences      map[int32]bool // partitions of the fence topic with a record of it
}

type pendingOffset struct {
	partition int32
	next      int64
	seq       int // its place among all commits of the group
}

// modelTxnID is a transactional ID: its present transaction, and the epoch of the producer that may
// use it.
type modelTxnID struct {
	epoch int
	txn   *modelTxn
}

// initProducer is InitProducerId: the open transaction of the predecessor is aborted, the predecessor
// is fenced, and the caller waits for the markers (CONCURRENT_TRANSACTIONS is retried by the client).
func (s *modelSession) initProducer() {
	id := s.txnID
	if id.txn != nil && id.txn.state == txnOpen {
		s.w.decide(id.txn, txnAborted)
	}
	id.epoch++
	s.epoch = id.epoch
	s.w.trace(s.lane.slot, "init producer, epoch %d", s.epoch)
	s.lane.wait(id.idle)
}

func (id *modelTxnID) idle() bool { return id.txn == nil || id.txn.done() }

func (t *modelTxn) done() bool { return t.state != txnOpen && t.marked && t.offsetsDone }

// transaction returns the open transaction of the session; the first request that belongs to one
// opens it at the coordinator (KIP-890).
func (s *modelSession) transaction() (*modelTxn, error) {
	if s.epoch == s.txnID.epoch && (s.txnID.txn == nil || s.txnID.txn.state != txnOpen) {
		s.lane.wait(s.txnID.idle)
	}
	switch {
	case s.epoch != s.txnID.epoch:
		s.w.saw(sightFenced)
		return nil, kerr.InvalidProducerEpoch
	case s.txn == nil:
		s.txn = &modelTxn{id: s.txnID, attempt: s.attempt, fences: make(map[int32]bool)}
		s.txnID.txn = s.txn
		s.w.txns = append(s.w.txns, s.txn)
	case s.txn.state != txnOpen:
		return nil, kerr.InvalidTxnState
	}
	return s.txn, nil
}

// decide ends a transaction at its coordinator.
func (w *modelWorld) decide(t *modelTxn, state txnState) {
	t.state = state
	w.trace(-1, "transaction of %v decided: committed=%t", t.attempt, state == txnCommitted)
	if state == txnCommitted {
		w.settle(t.attempt)
	}
	for !t.done() && w.dice.oneIn(2) {
		w.mark(t)
	}
}

// mark writes some of the markers of a decided transaction.
func (w *modelWorld) mark(t *modelTxn) {
	if t.offsetsDone || !t.marked && w.dice.oneIn(2) {
		t.marked = true
	} else {
		t.offsetsDone = true
		for _, o := range t.offsets {
			if t.state == txnCommitted {
				w.group.store(o)
			}
		}
	}
	if t.done() {
		w.txns = slices.DeleteFunc(w.txns, func(o *modelTxn) bool { return o == t })
		w.trace(-1, "transaction of %v has its markers", t.attempt)
	}
}

// timeOut aborts an open transaction that took too long; its producer is fenced with it.
func (w *modelWorld) timeOut(t *modelTxn) {
	w.trace(-1, "transaction of %v times out", t.attempt)
	t.id.epoch++
	w.decide(t, txnAborted)
}

// randomTxn picks one of the transactions in a state that fits.
func (w *modelWorld) randomTxn(fits func(*modelTxn) bool) *modelTxn {
	var some []*modelTxn
	for _, t := range w.txns {
		if fits(t) {
			some = append(some, t)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[w.dice.n(len(some))]
}

func (t *modelTxn) open() bool    { return t.state == txnOpen }
func (t *modelTxn) decided() bool { return t.state != txnOpen }

// stable tells whether a fetch of stable offsets answers for the partition.
func (w *modelWorld) stable(partition int32) bool {
	for _, t := range w.txns {
		if t.offsetsDone {
			continue
		}
		for _, o := range t.offsets {
			if o.partition == partition {
				w.saw(sightUnstable)
				return false
			}
		}
	}
	return true
}

// append writes one record for a session, as the partition's leader does.
func (s *modelSession) append(topic string, e *modelEntry, partition int32) error {
	if s.w.mix.transactional {
		txn, err := s.transaction()
		if err != nil {
			return err
		}
		e.txn = txn
	}
	log := s.w.topics[topic]
	if topic == topicFence && e.txn != nil {
		e.txn.fences[partition] = true
	}
	log[partition] = append(log[partition], e)
	return nil
}

// fenceStable tells that no transaction is open on the fence topic's partition: consumer.readFences
// waits for that.
func (w *modelWorld) fenceStable(partition int32) bool {
	for _, t := range w.txns {
		if t.fences[partition] && !t.marked {
			w.saw(sightFenceAwaited)
			return false
		}
	}
	return true
}

// fenceWindow is how many records consumer.readFences looks at, if there is a committed fence.
const fenceWindow = 8

// lastFence is what consumer.readFences finds.
func (w *modelWorld) lastFence(partition int32) (found consumer.Fence) {
	log := w.topics[topicFence][partition]
	from, seen := len(log), false
	for from > 0 && (len(log)-from < fenceWindow || !seen) {
		from--
		seen = seen || log[from].visible()
	}
	for _, e := range log[from:] {
		if e.visible() {
			found = found.Merge(e.fence)
		}
	}
	return found
}
