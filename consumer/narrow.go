package consumer

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A partition of the input may have no counterpart: the input was widened, and the fence topic or
// the output was not yet. It waits by itself, like one that is held at a record, and is looked at
// again and again. Its fence stays unread.

// longestNarrow is the longest pause between two looks at such a partition.
const longestNarrow = 5 * time.Second

// dueFences are the assigned partitions whose fences are to be read now, each with the number of
// the rebalance that gave it.
func (m *member) dueFences(begun map[int32]bool) map[int32]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, due := time.Now(), make(map[int32]int)
	for number, p := range m.partitions {
		waits := p.held != nil && p.held.narrow && now.Before(p.held.until)
		if !p.known() && begun[number] && !waits {
			due[number] = p.unread
		}
	}
	return due
}

// stillDue lists, in order, those that were not revoked since. One that has come back is not among
// them: it was another one's meanwhile, and what is known of it is of before.
func (m *member) stillDue(due map[int32]int) []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(due)), func(p int32) bool {
		return !m.isDueLocked(p, due[p])
	})
}

// isDueLocked reports whether the fence of a partition is still to be read for the rebalance.
func (m *member) isDueLocked(partition int32, rebalance int) bool {
	p := m.partitions[partition]
	return p != nil && p.unread == rebalance
}

// holdNarrow holds those of the partitions that have no counterpart: it takes them out of what is
// due, and their records out of the fetches. It returns where the client goes on.
func (m *member) holdNarrow(
	ctx context.Context, due map[int32]int, committed Offsets, fetches kgo.Fetches,
) (back Offsets, err error) {
	partitions := slices.Sorted(maps.Keys(due))
	narrow, err := m.client.Narrow(ctx, partitions)
	if err != nil {
		return nil, err
	}
	first := make(map[int32]int64)
	fetches.EachRecord(func(r *kgo.Record) {
		if at, known := first[r.Partition]; !known || r.Offset < at {
			first[r.Partition] = r.Offset
		}
	})
	m.mu.Lock()
	for _, p := range partitions {
		if reason, is := narrow[p]; is {
			m.narrowLocked(p, max(committed[p].Offset, first[p]), reason)
			delete(due, p)
			continue
		}
		if h := m.heldLocked(p); h != nil && h.narrow {
			m.opts.Logger.Info("a partition has its counterparts, and goes on", "partition", p,
				"held_for", time.Since(h.since))
			m.releaseLocked(p)
		}
	}
	m.mu.Unlock()
	if len(narrow) > 0 {
		back = m.withhold(fetches)
	}
	return back, nil
}

func (m *member) narrowLocked(partition int32, offset int64, reason string) {
	if h := m.heldLocked(partition); h != nil && h.narrow {
		offset = h.offset // it is told once
	}
	if h := m.holdLocked(partition, offset, reason); h != nil {
		h.narrow = true
		h.pause = min(h.pause, longestNarrow)
		h.until = time.Now().Add(h.pause)
	}
}

// releaseLocked ends a hold, and has the client go on where it was held.
func (m *member) releaseLocked(partition int32) {
	if p := m.partitions[partition]; p.returned != nowhere && p.paused() {
		m.client.Seek(Offsets{partition: {Epoch: -1, Offset: p.returned}})
	}
	m.unholdLocked(partition)
}
