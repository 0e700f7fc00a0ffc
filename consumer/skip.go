package consumer

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// returnToFences sets partitions back whose committed offset is above their fence. A batch moves both
// in one step, so this one was skipped: an operator set the offset forward, the group's offsets had
// expired and were pinned anew, or a broker lost the markers of a transaction, so that its offsets
// were committed without its records. Records in between may own claims; their copies would be dropped
// for records that nobody forwards. The polled batch is given back.
func (m *member) returnToFences(b *Batch, partitions []int32) error {
	if m.opts.AcceptSkips {
		return nil
	}
	committed := m.client.CommittedOffsets()[m.opts.Input] // as they were when the partitions came
	skipped := m.skipped(partitions, committed)
	if len(skipped) == 0 {
		return nil
	}
	back := m.giveBack(b)
	for p, fence := range skipped {
		m.opts.Logger.Error("offsets were moved forward over records that were not handled: reading them now; to skip them, set on_skip: accept",
			"partition", p, "committed", committed[p].Offset, "fence", fence.Offset)
		back[p] = fence
	}
	m.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{m.opts.Input: back})
	m.forgetReturned(skipped)
	return fmt.Errorf("%w: back to the fences of %d partitions: %w", ErrAborted, len(skipped), ErrRevoked)
}

func (m *member) skipped(partitions []int32, committed map[int32]kgo.EpochOffset) map[int32]kgo.EpochOffset {
	found := make(map[int32]kgo.EpochOffset)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range partitions {
		fence := m.fences[p]
		if at, ok := committed[p]; ok && fence.Next() > 0 && at.Offset > fence.Next() {
			found[p] = kgo.EpochOffset{Epoch: -1, Offset: fence.Next()}
		}
	}
	return found
}
