package consumer

import (
	"cmp"
	"slices"
)

// Assignment is one partition of the input that a member has.
type Assignment struct {
	Partition int32
	Fence     int64  // offset below which everything was handled; 0 if that is not known
	Lag       *int64 // nil until it was measured
}

// Assigned lists the member's partitions in order. It may be called by any goroutine.
func (m *member) Assigned() []Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	owned := m.ownedLocked()
	assigned := make([]Assignment, len(owned))
	for i, p := range owned {
		assigned[i] = Assignment{Partition: p, Fence: m.fences[p].Next()}
		if lag, ok := m.lags[p]; ok {
			assigned[i].Lag = &lag
		}
	}
	slices.SortFunc(assigned, func(a, b Assignment) int { return cmp.Compare(a.Partition, b.Partition) })
	return assigned
}
