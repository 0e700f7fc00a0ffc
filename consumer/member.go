package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// member is what both kinds of session share: a place in the group, its partitions and their
// fences.
type member struct {
	opts   Options
	client Client
	lag    *lagWatch
	filled int // bytes of the batch that the lane polls

	mu         sync.Mutex
	partitions map[int32]*partition // that are assigned
	rebalances int
	idle       context.CancelCauseFunc // ends the poll that waits for records; nil: none waits
	taken      map[int32]bool          // partitions that were revoked or lost since the last reset

	revoked   context.Context // of the batch in hand
	interrupt context.CancelCauseFunc

	// awaitOffsets returns when no offsets are on their way: the next owner of a partition begins
	// there.
	awaitOffsets func()
}

func newMember(opts Options) *member {
	m := &member{
		opts:         opts,
		partitions:   make(map[int32]*partition),
		awaitOffsets: func() {},
	}
	m.reset()
	return m
}

// reset begins a new batch: whatever was revoked before does not concern it.
func (m *member) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = make(map[int32]bool)
	m.revoked, m.interrupt = context.WithCancelCause(context.Background())
}

// wasTaken reports whether partitions were taken away since the batch began.
func (m *member) wasTaken() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.taken) > 0
}

// groupEvents is what the client calls.
type groupEvents struct{ *member }

// Assigned implements Events.
func (e groupEvents) Assigned(partitions []int32) {
	m := e.member
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.Metrics.rebalances.Inc()
	m.rebalances++
	for _, number := range partitions {
		if p := m.partitions[number]; p != nil {
			p.unread = m.rebalances
			continue
		}
		m.partitions[number] = newPartition(m.rebalances)
	}
	if len(partitions) > 0 { // a rebalance that changed nothing for this member
		m.opts.Logger.Info("partitions assigned", "partitions", partitions)
		crashpoint.At("partitions-assigned")
	}
}

// Revoked implements Events.
func (e groupEvents) Revoked(partitions []int32) {
	e.awaitOffsets()
	e.drop("partitions revoked", partitions)
}

// Lost implements Events.
func (e groupEvents) Lost(partitions []int32) { e.drop("partitions lost", partitions) }

// Blocked implements Events. It ends the claims of the batch in hand.
func (e groupEvents) Blocked() {
	m := e.member
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interruptLocked()
}

// interruptLocked ends the claims of the batch in hand, or else the poll for one.
func (m *member) interruptLocked() {
	m.interrupt(ErrRevoked)
	if m.idle != nil {
		m.idle(errTaken)
	}
}

func (m *member) drop(what string, partitions []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(partitions) == 0 {
		return
	}
	m.interruptLocked()
	for _, p := range partitions {
		m.taken[p] = true
		m.unholdLocked(p)
		delete(m.partitions, p)
		m.opts.Metrics.forgetPartition(p)
	}
	m.opts.Logger.Info(what, "partitions", partitions)
}

// Joined reports whether the group has accepted this member.
func (m *member) Joined() bool { return m.client.Joined() }

// fenceRecords are the fences to write for a batch. They build on those that the batch was polled
// with: a partition may have been lost since.
func (m *member) fenceRecords(b *Batch) []*kgo.Record {
	records := make([]*kgo.Record, 0, len(b.Spans))
	for s, f := range b.Fences() {
		records = append(records, fence.Record(m.opts.FenceTopic, m.opts.Input, s.Partition,
			f.In(m.opts.Store)))
	}
	return records
}

// settle moves the fences of this session past a batch that is committed. When the input's log was
// cut, the client goes back within the session and delivers what was handled again.
func (m *member) settle(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.Metrics.consumed.Add(float64(len(b.Records)))
	for s, f := range b.Fences() {
		p := m.partitions[s.Partition]
		if !p.known() {
			continue
		}
		p.fence, p.done = f.In(m.opts.Store), s.Next
		if h := p.held; h != nil && s.Next > h.offset {
			m.opts.Logger.Info("a partition goes on behind the record at which it was held",
				"partition", s.Partition, "offset", h.offset, "held_for", time.Since(h.since))
			m.unholdLocked(s.Partition)
		}
		if s.skip != nil && s.Next > s.skip.Offset {
			p.skip = nil
		}
		p.unsure = max(0, p.unsure-(s.to-s.from))
	}
}

// clocksDiffer is more than the clocks of processes, stores and store nodes may differ. A claim
// that was made by one of them ends by another.
const clocksDiffer = 5 * time.Minute

// noteMissingLocked keeps what is missing from a batch as far as there is doubt.
func (m *member) noteMissingLocked(b *Batch) {
	for i := range b.Spans {
		s := &b.Spans[i]
		if p := m.partitions[s.Partition]; p == nil || p.unsure == 0 {
			s.missing = nil
		}
		switch {
		case m.opts.TTL == 0:
			s.until = time.Now().Add(forever) // also for what is missing since before
		case len(s.missing) > 0:
			s.until = time.Now().Add(m.opts.TTL + clocksDiffer)
		}
	}
}

// forever is how long copies on other partitions may renew the claim of a record that is gone.
const forever = 100 * 365 * 24 * time.Hour

// acks collects the promises of produced records. It keeps the first error: the client would
// commit a transaction of which only some records were written.
type acks struct {
	mu  sync.Mutex
	err error
}

func (a *acks) promise(_ *kgo.Record, err error) {
	if err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
	}
}

// take returns the first error since the last call.
func (a *acks) take() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.err
	a.err = nil
	return err
}
