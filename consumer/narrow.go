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
	now, due := time.Now(), maps.Clone(m.unread)
	maps.DeleteFunc(due, func(p int32, _ int) bool {
		h := m.held[p]
		return !begun[p] || h != nil && h.narrow && now.Before(h.until)
	})
	return due
}

// stillDue leaves out the partitions that were revoked since, also those that have come back: they
// are another one's now, or were, and what is known of them is of before.
func (m *member) stillDue(due map[int32]int, partitions []int32) []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(partitions), func(p int32) bool {
		return m.unread[p] != due[p]
	})
}

// holdNarrow holds those of the partitions that have no counterpart, and takes their records out of
// the fetches. It returns the others, and where the client goes on.
func (m *member) holdNarrow(
	ctx context.Context, partitions []int32, committed Offsets, fetches kgo.Fetches,
) (wide []int32, back Offsets, err error) {
	narrow, err := m.client.Narrow(ctx, partitions)
	if err != nil {
		return nil, nil, err
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
			continue
		}
		wide = append(wide, p)
		if h := m.held[p]; h != nil && h.narrow {
			m.opts.Logger.Info("a partition has its counterparts, and goes on", "partition", p,
				"held_for", time.Since(h.since))
			m.releaseLocked(p, h)
		}
	}
	m.mu.Unlock()
	if len(narrow) > 0 {
		back = m.withhold(fetches)
	}
	return wide, back, nil
}

func (m *member) narrowLocked(partition int32, offset int64, reason string) {
	if h := m.held[partition]; h != nil && h.narrow {
		offset = h.offset // it is told once
	}
	m.holdLocked(partition, offset, reason)
	if h := m.held[partition]; h != nil {
		h.narrow = true
		h.pause = min(h.pause, longestNarrow)
		h.until = time.Now().Add(h.pause)
	}
}

// releaseLocked ends a hold, and has the client go on where it was held.
func (m *member) releaseLocked(partition int32, h *hold) {
	if at, waiting := m.returned[partition]; waiting && h.paused {
		m.client.Seek(Offsets{partition: {Epoch: -1, Offset: at}})
	}
	m.unholdLocked(partition)
}
