//go:build !race

package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/fence"
)

// entry is a record on one of the topics that the pipeline writes.
type entry struct {
	record   *kgo.Record
	fence    fence.Fence // on the fence topic, instead of a record
	source   *source
	attempt  *attempt
	restores bool         // a fence of before, without which the client would not abort
	txn      *transaction // nil outside of transactions
}

// visible is what a reader with read_committed gets once the markers are written.
func (e *entry) visible() bool { return e.txn == nil || e.txn.state == txnCommitted }

// topicLog is the log of one topic, by partition, in the order of appends. A transaction's records
// stand where they were appended, also if it is committed later.
type topicLog [][]*entry

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

// transaction is a transaction as the brokers know it. It is decided first (TransactionCoordinator:
// PrepareCommit, PrepareAbort), and its markers are written later, those of the offsets apart from
// those of the topics. Until then readers with read_committed stop before its first record (the
// last stable offset), and fetches of stable offsets wait (KIP-447).
type transaction struct {
	id          *transactionalID
	client      *client
	attempt     *attempt // whose records and offsets it has
	state       txnState
	marked      bool // on the topics
	offsetsDone bool
	offsets     []pendingOffset
	fences      map[int32]bool // partitions of the fence topic with a record of it
}

type pendingOffset struct {
	partition int32
	next      int64
	epoch     int32 // of what lies below it; -1 if nobody said so
	seq       int   // its place among all commits of the group
}

// belongs notes that something of an attempt is in the transaction. Nothing of two of them may be:
// the client goes on with a transaction that it did not end.
func (t *transaction) belongs(w *world, a *attempt) {
	if t.attempt != nil && t.attempt != a {
		w.failf("one transaction has parts of %v and %v", t.attempt, a)
	}
	t.attempt = a
}

// transactionalID is a transactional ID: its present transaction, and the epoch of the producer
// that may use it.
type transactionalID struct {
	epoch int
	txn   *transaction
}

// initProducer is InitProducerId: the open transaction of the predecessor is aborted, the
// predecessor is fenced, and the caller waits for the markers (CONCURRENT_TRANSACTIONS is retried
// by the client).
func (c *client) initProducer() {
	id := c.txnID
	if id.txn != nil && id.txn.state == txnOpen {
		c.w.decide(id.txn, txnAborted)
	}
	id.epoch++
	c.epoch = id.epoch
	c.w.trace(c.process.slot, "init producer, epoch %d", c.epoch)
	c.pause("init producer", id.idle)
}

func (id *transactionalID) idle() bool { return id.txn == nil || id.txn.done() }

func (t *transaction) done() bool { return t.state != txnOpen && t.marked && t.offsetsDone }

// transaction returns the open transaction of the client; the first request that belongs to one
// opens it at the coordinator (KIP-890).
func (c *client) transaction() (*transaction, error) {
	if c.epoch == c.txnID.epoch && (c.txnID.txn == nil || c.txnID.txn.state != txnOpen) {
		c.pause("markers", c.txnID.idle)
	}
	switch {
	case c.epoch != c.txnID.epoch:
		c.w.saw(sightFenced)
		return nil, kerr.InvalidProducerEpoch
	case c.txn == nil:
		c.txn = &transaction{id: c.txnID, client: c, fences: make(map[int32]bool)}
		c.txnID.txn = c.txn
		c.w.txns = append(c.w.txns, c.txn)
	case c.txn.state != txnOpen:
		return nil, kerr.InvalidTxnState
	}
	return c.txn, nil
}

// decide ends a transaction at its coordinator.
func (w *world) decide(t *transaction, state txnState) {
	t.state = state
	w.trace(-1, "transaction of %v decided: committed=%t", t.attempt, state == txnCommitted)
	if state == txnCommitted {
		w.commitAttempt(t.attempt)
	}
	for !t.done() && w.dice.oneIn(2) {
		w.mark(t)
	}
}

// mark writes some of the markers of a decided transaction.
func (w *world) mark(t *transaction) {
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
		w.txns = slices.DeleteFunc(w.txns, func(o *transaction) bool { return o == t })
		w.trace(-1, "transaction of %v has its markers", t.attempt)
	}
}

// timeOut aborts an open transaction that took too long; its producer is fenced with it.
func (w *world) timeOut(t *transaction) {
	w.trace(-1, "transaction of %v times out", t.attempt)
	t.id.epoch++
	w.decide(t, txnAborted)
}

// randomTxn picks one of the transactions in a state that fits.
func (w *world) randomTxn(fits func(*transaction) bool) *transaction {
	var some []*transaction
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

func (t *transaction) open() bool    { return t.state == txnOpen }
func (t *transaction) decided() bool { return t.state != txnOpen }

// stable tells whether a fetch of stable offsets answers for the partition.
func (w *world) stable(partition int32) bool {
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
func (s *client) append(topic string, e *entry, partition int32) error {
	if s.w.mix.transactional {
		txn, err := s.transaction()
		if err != nil {
			return err
		}
		e.txn = txn
		s.wrote = true
		if !e.restores {
			txn.belongs(s.w, e.attempt)
		}
	}
	log := s.w.topics[topic]
	if int(partition) >= s.w.outputs && (topic == topicClean || topic == topicFence) {
		s.w.failf("a record for partition %d of %s, which is not there", partition, topic)
	}
	if topic == topicFence && e.txn != nil {
		e.txn.fences[partition] = true
	}
	log[partition] = append(log[partition], e)
	return nil
}

// fenceStable tells that no transaction is open on the fence topic's partition: fence.Read
// waits for that.
func (w *world) fenceStable(partition int32) bool {
	for _, t := range w.txns {
		if t.fences[partition] && !t.marked {
			w.saw(sightFenceAwaited)
			return false
		}
	}
	return true
}

// fenceWindow is how many records fence.Read looks at, if there is a committed fence.
const fenceWindow = 8

// lastFence is what fence.Read finds.
func (w *world) lastFence(partition int32) (found fence.Fence) {
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

// transactions is a client with a transactional producer.
type transactions struct{ *client }

var _ consumer.TransactionalClient = transactions{}

// Begin implements consumer.TransactionalClient.
func (t transactions) Begin(context.Context) error {
	t.must(!t.begun, "begin of a transaction in another one")
	t.begun = true
	return nil
}

// AddOffsets implements consumer.TransactionalClient.
func (t transactions) AddOffsets(ctx context.Context, _ [16]byte, offsets consumer.Offsets) error {
	t.must(t.begun, "offsets without a transaction")
	t.pause("add offsets", nil)
	if err := t.reach(ctx, "add offsets", clusterOfOutput); err != nil || t.w.fault(faultBegin) {
		return errors.Join(err, errAnswer)
	}
	txn, err := t.transaction()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case t.w.fault(faultTxnOffsets):
		return consumer.Refusals[t.w.dice.n(len(consumer.Refusals))]
	case !t.w.group.accepts(t.client):
		return []error{kerr.IllegalGeneration, kerr.UnknownMemberID,
			kerr.StaleMemberEpoch}[t.w.dice.n(3)]
	}
	txn.belongs(t.w, t.attempt)
	for p := range int32(len(t.held)) {
		if at, ok := offsets[p]; ok {
			t.w.group.seq++
			txn.offsets = append(txn.offsets, pendingOffset{p, at.Offset, at.Epoch,
				t.w.group.seq})
		}
	}
	return nil
}

// End implements consumer.TransactionalClient. Without a record that the client wrote it sends no
// request.
func (t transactions) End(ctx context.Context, commit bool) error {
	t.must(t.begun, "end without a transaction")
	t.pause("end", nil)
	if t.wrote {
		if err := t.reach(ctx, "end", clusterOfOutput); err != nil {
			return err
		}
	}
	if t.kicked && commit {
		t.w.saw(sightZombieCommit)
	}
	if !commit && !t.aborting {
		t.w.saw(sightLateClaims)
	}
	if !t.wrote {
		t.begun = false
		return nil
	}
	if commit && t.w.fault(faultEnd) { // whose outcome the client does not learn
		if t.w.dice.oneIn(2) && t.end(txnCommitted) == nil {
			t.w.saw(sightCommitUnknown)
		}
		return errAnswer
	}
	if !commit && t.w.fault(faultEnd) {
		return errAnswer
	}
	state := txnAborted
	if commit {
		state = txnCommitted
	}
	if err := t.end(state); err != nil {
		return err
	}
	t.begun, t.wrote, t.txn = false, false, nil
	return nil
}

func (t transactions) end(state txnState) error {
	switch {
	case t.epoch != t.txnID.epoch:
		return kerr.InvalidProducerEpoch
	case t.txn == nil || t.txn.state != txnOpen:
		return kerr.InvalidTxnState
	}
	t.w.decide(t.txn, state)
	return nil
}

// Discard implements consumer.TransactionalClient.
func (t transactions) Discard(context.Context) error {
	for _, p := range t.buffer {
		p.promise(kgo.ErrAborting)
	}
	t.buffer = nil
	return nil
}

// Marked implements consumer.TransactionalClient.
func (t transactions) Marked(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	t.pause("marked", nil)
	if t.w.away[clusterOfOutput] || t.w.fault(faultRequest) {
		return false, fmt.Errorf("describe transactions: %w", errors.Join(errAnswer, ctx.Err()))
	}
	return t.txnID.idle(), nil
}
