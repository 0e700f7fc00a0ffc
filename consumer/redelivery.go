package consumer

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A session that goes on after a batch was given back relies on its client to deliver that batch
// again. If the client did not, the next commit would pass over records that nobody forwarded, so
// their delivery is watched from here. A new session reads from the group's offsets and relies on
// nothing.

// ErrNotDelivered ends a session whose client passed over records that it should have delivered
// again.
var ErrNotDelivered = errors.New("the client did not deliver them again")

// giveBack notes where the batch's partitions must go on. Those that were taken away meanwhile, or
// came back after that, begin at the group's offsets: their fences are not known.
func (m *member) giveBack(b *Batch) Offsets {
	m.mu.Lock()
	defer m.mu.Unlock()
	back := make(Offsets)
	for i := range b.Spans {
		s := &b.Spans[i]
		p := m.partitions[s.Partition]
		if !p.known() {
			continue
		}
		first := s.First
		if earlier, twice := back[s.Partition]; twice {
			first = min(first, earlier.Offset)
		}
		back[s.Partition] = kgo.EpochOffset{Epoch: p.fence.EpochBelow(s.TopicID), Offset: first}
		p.returned = first
		p.doubt(m.opts.Limit.Records())
	}
	return back
}

// goBack gives the batch back and has the client deliver it again.
func (m *member) goBack(b *Batch) { m.client.Seek(m.giveBack(b)) }

// checkRedelivery returns an error if records that were given back are missing. That may also be
// because the broker removed them meanwhile; a new session finds out.
func (m *member) checkRedelivery(b *Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.Spans {
		s := &b.Spans[i]
		p := m.partitions[s.Partition]
		if p == nil {
			continue
		}
		if p.returned != nowhere && s.First > p.returned {
			return fmt.Errorf("poll: partition %d goes on at offset %d, but its records from %d "+
				"were given back: %w",
				s.Partition, s.First, p.returned, ErrNotDelivered)
		}
		p.returned = nowhere
	}
	return nil
}

// soughtBehind reports whether the client was sent to records behind an offset since it went back
// to that: it has forgotten that it did.
func (m *member) soughtBehind(partition int32, offset int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.partitions[partition]
	return p != nil && p.returned > offset // nowhere is below all offsets
}

// checkReturned returns an error if a partition was taken away and came back while the batch was
// polled. Its records may be from before, and others have handled them since.
func (m *member) checkReturned(b *Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.Spans {
		if p := b.Spans[i].Partition; m.taken[p] && m.partitions[p] != nil {
			return fmt.Errorf("poll: partition %d was taken away and came back meanwhile", p)
		}
	}
	return nil
}

// wakeForFences ends the poll of a session that has fences to read of partitions which the client
// knows the offsets of.
func (m *member) wakeForFences(committed Offsets) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for number, p := range m.partitions {
		if _, begun := committed[number]; begun && !p.known() && m.idle != nil {
			m.idle(errUnread)
			return
		}
	}
}

// undelivered is how long a lane may wait for records, by measurements of the lag, while a
// partition has some and does not move.
const undelivered = 2 * time.Minute

// stillness counts those measurements for one partition.
type stillness struct {
	position int64
	times    int
}

// noteLag is told each measurement: records between the position and the end. It ends the poll of a
// session that does not get what is there.
func (m *member) noteLag(partition int32, position, lag int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.partitions[partition]
	if p == nil {
		return
	}
	p.lag = lag
	m.opts.Metrics.lag.set(partition, float64(lag))
	switch {
	case lag == 0 || p.still.position != position || p.paused():
		p.still = stillness{position: position}
	case m.idle != nil:
		p.still.times++
	}
	if p.still.times >= int(undelivered/lagInterval) && m.idle != nil {
		m.idle(fmt.Errorf(
			"poll: %d records of partition %d, from offset %d, were not delivered in %v", lag,
			partition, position, undelivered))
	}
}
