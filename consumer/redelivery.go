package consumer

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A session that goes on after a batch was given back relies on its client to deliver that batch again. If the
// client did not, the next commit would pass over records that nobody forwarded, so their delivery is
// watched from here. A new session reads from the group's offsets and relies on nothing.

// giveBack notes where the batch's partitions must go on. Those that were taken away meanwhile, or came back
// after that, begin at the group's offsets: their fences are not known.
func (m *member) giveBack(b *Batch) map[int32]kgo.EpochOffset {
	m.mu.Lock()
	defer m.mu.Unlock()
	back := make(map[int32]kgo.EpochOffset)
	for _, s := range b.Spans {
		fence, kept := m.fences[s.Partition]
		if !kept {
			continue
		}
		first := s.First
		if before, twice := back[s.Partition]; twice {
			first = min(first, before.Offset)
		}
		back[s.Partition] = kgo.EpochOffset{Epoch: fence.epochBelow(s.TopicID), Offset: first}
		m.returned[s.Partition] = first
	}
	return back
}

// goBack gives the batch back and has the client deliver it again.
func (m *member) goBack(b *Batch) {
	m.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{m.opts.Input: m.giveBack(b)})
}

// forgetReturned lets partitions go on anywhere: they were set to their fences, whose records may be gone.
func (m *member) forgetReturned(partitions map[int32]kgo.EpochOffset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range partitions {
		delete(m.returned, p)
	}
}

// checkRedelivery returns an error if records that were given back are missing. That may also be because the
// broker removed them meanwhile; a new session finds out.
func (m *member) checkRedelivery(b *Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range b.Spans {
		first, waiting := m.returned[s.Partition]
		if waiting && s.First > first {
			return fmt.Errorf("poll: partition %d goes on at offset %d, but its records from %d were given back", s.Partition, s.First, first)
		}
		delete(m.returned, s.Partition)
	}
	return nil
}

// undelivered is how long a lane may wait for records, by measurements of the lag, while a partition has some
// and does not move.
const undelivered = 2 * time.Minute

// stillness counts those measurements for one partition.
type stillness struct {
	position int64
	times    int
}

// noteLag is told each measurement: records between the position and the end. It ends the poll of a session
// that does not get what is there.
func (m *member) noteLag(partition int32, position, lag int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ownsLocked(partition) {
		return
	}
	m.lags[partition] = lag
	m.opts.Metrics.setLag(partition, lag)
	still := m.still[partition]
	switch {
	case lag == 0 || still.position != position:
		still = stillness{position: position}
	case m.idle != nil:
		still.times++
	}
	m.still[partition] = still
	if still.times >= int(undelivered/lagInterval) && m.idle != nil {
		m.idle(fmt.Errorf("poll: %d records of partition %d, from offset %d, were not delivered in %v", lag, partition, position, undelivered))
	}
}
