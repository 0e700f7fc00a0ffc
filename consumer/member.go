package consumer

import (
	"context"
	"maps"
	"slices"
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

	mu     sync.Mutex
	fences map[int32]fence.Fence // of the assigned partitions; partitions in unread are not in it
	// partitions that are assigned and whose fence was not read yet, with the number of the
	// rebalance that gave them: one may be revoked and come back meanwhile
	unread     map[int32]int
	rebalances int
	warned     map[int32]bool // partitions whose rewind was reported
	// the group's offsets of the assigned partitions, as this session found or left them
	done map[int32]int64
	lags map[int32]int64 // of the assigned partitions, as far as measured
	// first offsets of what was given back and not delivered again yet
	returned map[int32]int64
	held     map[int32]*hold      // partitions that wait at a record
	skips    map[int32]fence.Skip // of the assigned partitions
	still    map[int32]stillness
	hidden   map[int32]hidden // partitions with records behind an open transaction
	// records to come, before and between which earlier attempts may have claimed others
	unsure map[int32]int
	idle   context.CancelCauseFunc // ends the poll that waits for records; nil while there is none
	taken  map[int32]bool          // partitions that were revoked or lost since the last reset

	revoked   context.Context // of the batch in hand
	interrupt context.CancelCauseFunc

	// awaitOffsets returns when no offsets are on their way: the next owner of a partition begins
	// there.
	awaitOffsets func()
}

func newMember(opts Options) *member {
	m := &member{
		opts:     opts,
		fences:   make(map[int32]fence.Fence),
		unread:   make(map[int32]int),
		warned:   make(map[int32]bool),
		done:     make(map[int32]int64),
		lags:     make(map[int32]int64),
		returned: make(map[int32]int64),
		held:     make(map[int32]*hold),
		skips:    make(map[int32]fence.Skip),
		still:    make(map[int32]stillness),
		hidden:   make(map[int32]hidden),
		unsure:   make(map[int32]int),

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
	for _, p := range partitions {
		m.unread[p] = m.rebalances
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
	m.interrupt(ErrRevoked)
}

func (m *member) drop(what string, partitions []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(partitions) == 0 {
		return
	}
	m.interrupt(ErrRevoked)
	for _, p := range partitions {
		m.taken[p] = true
		delete(m.fences, p)
		delete(m.unread, p)
		delete(m.warned, p)
		delete(m.done, p)
		delete(m.lags, p)
		delete(m.returned, p)
		delete(m.still, p)
		m.unholdLocked(p)
		delete(m.skips, p)
		delete(m.unsure, p)
		delete(m.hidden, p)
		m.opts.Metrics.forgetPartition(p)
	}
	m.opts.Logger.Info(what, "partitions", partitions)
}

// Joined reports whether the group has accepted this member.
func (m *member) Joined() bool { return m.client.Joined() }

// fenceRecords are the fences to write for a batch. They build on those that the batch was polled
// with: a partition may have been lost since.
func (m *member) fenceRecords(b *Batch) []*kgo.Record {
	records := make([]*kgo.Record, len(b.Spans))
	for i := range b.Spans {
		s := &b.Spans[i]
		records[i] = fence.Record(m.opts.FenceTopic, m.opts.Input, s.Partition,
			s.Fence().In(m.opts.Store))
	}
	return records
}

// settle moves the fences of this session past a batch that is committed. When the input's log was
// cut, the client goes back within the session and delivers what was handled again.
func (m *member) settle(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.Metrics.consumed.Add(float64(len(b.Records)))
	for i := range b.Spans {
		s := &b.Spans[i]
		if _, owned := m.fences[s.Partition]; owned {
			m.fences[s.Partition], m.done[s.Partition] = s.Fence().In(m.opts.Store), s.Next
			if h := m.held[s.Partition]; h != nil && s.Next > h.offset {
				m.opts.Logger.Info("a partition goes on behind the record at which it was held",
					"partition", s.Partition, "offset", h.offset, "held_for", time.Since(h.since))
				m.unholdLocked(s.Partition)
			}
			if s.skip != nil && s.Next > s.skip.Offset {
				delete(m.skips, s.Partition)
			}
			m.unsure[s.Partition] = max(0, m.unsure[s.Partition]-(s.to-s.from))
		}
	}
}

// mostClaimed is how many records an earlier attempt may have claimed and not committed: those of
// one batch, by whatever configuration it had.
const mostClaimed = 50_000

// doubtLocked has the next records of a partition looked at for missing ones: a batch that was
// given back, or whose member died, may have claimed them. Behind that, nobody has claimed what is
// missing.
func (m *member) doubtLocked(partition int32) {
	m.unsure[partition] = max(m.opts.Room.Records(), mostClaimed)
}

// clocksDiffer is more than the clocks of processes, stores and store nodes may differ. A claim
// that was made by one of them ends by another.
const clocksDiffer = 5 * time.Minute

// noteMissingLocked keeps what is missing from a batch as far as there is doubt.
func (m *member) noteMissingLocked(b *Batch) {
	for i := range b.Spans {
		s := &b.Spans[i]
		if m.unsure[s.Partition] == 0 {
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

func (m *member) ownsLocked(partition int32) bool {
	_, known := m.fences[partition]
	return known || m.unread[partition] > 0
}

// owned lists the assigned partitions in order.
func (m *member) owned() []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ownedLocked()
}

func (m *member) ownedLocked() []int32 {
	owned := slices.Collect(maps.Keys(m.fences))
	owned = slices.AppendSeq(owned, maps.Keys(m.unread))
	slices.Sort(owned)
	return owned
}

// Assignment is one partition of the input that a member has.
type Assignment struct {
	Partition int32
	Fence     int64  // offset below which everything was handled; 0 if that is not known
	Lag       *int64 // nil until it was measured
	Hidden    int64  // records behind an open transaction of a producer, which are in no lag
	Held      *Held  // nil unless it waits at a record
}

// Assignments lists the member's partitions in order. It may be called by any goroutine.
func (m *member) Assignments() []Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	owned := m.ownedLocked()
	assigned := make([]Assignment, len(owned))
	for i, p := range owned {
		assigned[i] = Assignment{Partition: p, Fence: m.fences[p].Next(),
			Hidden: m.hidden[p].records}
		if lag, ok := m.lags[p]; ok {
			assigned[i].Lag = &lag
		}
		if h := m.held[p]; h != nil {
			assigned[i].Held = &Held{Offset: h.offset, Reason: h.reason, Since: h.since,
				Until: h.until}
		}
	}
	return assigned
}
