package consumer

import (
	"maps"
	"slices"

	"github.com/kdedup/kdedup/fence"
)

// partition is one of the input that the group has assigned to this member, until it is taken away.
// With it, all is forgotten that the member knows of it.
type partition struct {
	// unread is the number of the rebalance that assigned it, until its fence is read: it may be
	// revoked and come back meanwhile. 0: the fence is known.
	unread int
	fence  fence.Fence // zero while it is unread
	warned bool        // its rewind was reported

	done     int64 // the group's offset, as this session found or left it; or nowhere
	lag      int64 // as it was measured last; or nowhere
	returned int64 // the first offset of what was given back and not delivered again; or nowhere
	epoch    int32 // the latest of the batches that were polled; or nowhere

	held   *hold       // it waits at a record; or nil
	skip   *fence.Skip // an operator's word; or nil
	still  stillness
	hidden *hidden // records behind an open transaction; or nil
	// unsure counts records to come, before and between which earlier attempts may have claimed
	// others.
	unsure int
}

// nowhere stands for an offset, or a lag, that is not known.
const nowhere = -1

func newPartition(rebalance int) *partition {
	return &partition{unread: rebalance, done: nowhere, lag: nowhere, returned: nowhere,
		epoch: nowhere}
}

// known reports whether the fence was read. It is false for a partition that the member does not
// have, which is nil.
func (p *partition) known() bool { return p != nil && p.unread == 0 }

// paused reports whether the client fetches nothing of it for now.
func (p *partition) paused() bool { return p.held != nil && p.held.paused }

// doubt has the next records looked at for missing ones: a batch that was given back, or whose
// member died, may have claimed them. Behind that, nobody has claimed what is missing.
func (p *partition) doubt(batch int) { p.unsure = max(batch, mostClaimed) }

// mostClaimed is how many records an earlier attempt may have claimed and not committed: those of
// one batch, by whatever configuration it had.
const mostClaimed = 50_000

// fenceLocked is that of a partition, as far as it is known.
func (m *member) fenceLocked(number int32) fence.Fence {
	if p := m.partitions[number]; p != nil {
		return p.fence
	}
	return fence.Fence{}
}

// owned lists the assigned partitions in order.
func (m *member) owned() []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ownedLocked()
}

func (m *member) ownedLocked() []int32 { return slices.Sorted(maps.Keys(m.partitions)) }

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
	for i, number := range owned {
		p := m.partitions[number]
		assigned[i] = Assignment{Partition: number, Fence: p.fence.Next()}
		if lag := p.lag; lag != nowhere {
			assigned[i].Lag = &lag
		}
		if p.hidden != nil {
			assigned[i].Hidden = p.hidden.records
		}
		if h := p.held; h != nil {
			assigned[i].Held = &Held{Offset: h.offset, Reason: h.reason, Since: h.since,
				Until: h.until}
		}
	}
	return assigned
}
