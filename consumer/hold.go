package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// hold keeps a partition at a record that can be delivered nowhere, or not be read, while the
// others go on. Its time over, the record comes again, alone: what is behind it waits until it is
// known what becomes of it.
type hold struct {
	offset int64
	reason string
	since  time.Time
	pause  time.Duration // the latest one
	until  time.Time     // its end
	paused bool          // the client fetches nothing of the partition
	seek   bool          // and goes on only when it is told where: at the record
	narrow bool          // it has no counterpart, see holdNarrow
}

const (
	firstHold   = time.Second
	longestHold = time.Minute
	skipTimeout = 5 * time.Second // for reading an operator's word
)

// Held tells of a partition that waits at a record.
type Held struct {
	Offset int64
	Reason string
	Since  time.Time
	Until  time.Time // when it is tried again
}

func (h *Held) String() string { return fmt.Sprintf("held at offset %d: %s", h.Offset, h.Reason) }

// Hold keeps a record, and what is behind it on its partition, out of the next batches, for a pause
// that grows while it comes to nothing. It is called before the batch with the record is given
// back.
func (m *member) Hold(partition int32, offset int64, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holdLocked(partition, offset, reason)
}

// holdUnread keeps a partition at a batch that the client does not unpack, and at which it has
// stopped.
func (m *member) holdUnread(partition int32, offset int64) {
	begins := m.client.Committed()[partition].Offset // maybe in the middle of the batch
	m.mu.Lock()
	defer m.mu.Unlock()
	offset = max(offset, begins, m.fenceLocked(partition).Next())
	if h := m.holdLocked(partition, offset,
		"the batch unpacks to more than unpacked_bytes"); h != nil {
		h.paused, h.seek = true, true
	}
}

// holdLocked returns nil for a partition that the member does not have.
func (m *member) holdLocked(partition int32, offset int64, reason string) *hold {
	p := m.partitions[partition]
	if p == nil {
		return nil
	}
	now := time.Now()
	h := p.held
	if h == nil || h.offset != offset {
		m.unholdLocked(partition)
		h = &hold{offset: offset, since: now, pause: firstHold / 2}
		p.held = h
		m.opts.Logger.Error("a partition is held at a record; the others go on",
			"partition", partition, "offset", offset, "error", reason)
	}
	h.reason = reason
	h.pause = min(2*h.pause, longestHold)
	h.until = now.Add(h.pause)
	m.opts.Metrics.held.set(partition, 1)
	return h
}

// heldLocked is nil for a partition that is not held, or that the member does not have.
func (m *member) heldLocked(partition int32) *hold {
	if p := m.partitions[partition]; p != nil {
		return p.held
	}
	return nil
}

// unholdLocked forgets a hold.
func (m *member) unholdLocked(partition int32) {
	h := m.heldLocked(partition)
	if h == nil {
		return
	}
	m.partitions[partition].held = nil
	m.opts.Metrics.held.forget(partition)
	if h.paused {
		m.client.Resume(partition)
	}
}

// resumeHeld has the client fetch again what has been held for long enough. It returns when the
// next one has, if there is one.
func (m *member) resumeHeld() (next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for number, p := range m.partitions {
		switch h := p.held; {
		case !p.paused():
		case !now.Before(h.until):
			at := p.returned
			if h.seek {
				at = h.offset
			}
			if at != nowhere { // a client that was looking for the leader has not heard it
				m.client.Seek(Offsets{number: {Epoch: -1, Offset: at}})
			}
			h.paused, h.seek = false, false
			m.client.Resume(number)
		case next.IsZero() || h.until.Before(next):
			next = h.until
		}
	}
	return next
}

// readSkips looks for an operator's word about the records that come again now. Without an answer
// they come all the same.
func (m *member) readSkips(ctx context.Context) {
	m.mu.Lock()
	var due []int32
	for number, p := range m.partitions {
		if p.paused() && !time.Now().Before(p.held.until) && p.known() {
			due = append(due, number)
		}
	}
	m.mu.Unlock()
	if len(due) == 0 {
		return
	}
	slices.Sort(due)
	ctx, cancel := context.WithTimeout(ctx, skipTimeout)
	defer cancel()
	found, err := m.client.Fences(ctx, due)
	if err != nil {
		m.opts.Logger.Warn(
			"cannot read whether an operator skips the records at which partitions are held",
			"partitions", due, "error", err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, number := range due {
		if p := m.partitions[number]; p != nil {
			p.heed(found, number)
		}
	}
}

// heed keeps what an operator has said of a record.
func (p *partition) heed(found fence.Found, number int32) {
	if skip, some := found.Skips[number]; some {
		p.skip = &skip
	}
}

func (m *member) noteSkipsLocked(b *Batch) {
	for i := range b.Spans {
		s := &b.Spans[i]
		if p := m.partitions[s.Partition]; p != nil && p.skip != nil &&
			p.skip.Offset >= s.First && p.skip.Offset < s.Next {
			s.skip = p.skip
		}
	}
}

// holdsLocked reports whether a partition is held.
func (m *member) holdsLocked() bool {
	for _, p := range m.partitions {
		if p.held != nil {
			return true
		}
	}
	return false
}

// withhold takes out of the fetches what is held, and has the client deliver it again. It returns
// where.
func (m *member) withhold(fetches kgo.Fetches) (back Offsets) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.holdsLocked() {
		return nil
	}
	m.dropPassedLocked(fetches)
	now := time.Now()
	back = make(Offsets)
	for i := range fetches {
		for j := range fetches[i].Topics {
			partitions := fetches[i].Topics[j].Partitions
			for k := range partitions {
				f := &partitions[k]
				h := m.heldLocked(f.Partition)
				if h == nil || h.narrow && !now.Before(h.until) {
					continue
				}
				f.Records = h.cut(f.Records, now, func(first int64) {
					if at, twice := back[f.Partition]; !twice || first < at.Offset {
						back[f.Partition] = kgo.EpochOffset{Epoch: -1, Offset: first}
					}
				})
			}
		}
	}
	for p := range back {
		if h := m.heldLocked(p); now.Before(h.until) {
			h.paused = true
			m.client.Pause(p)
		}
	}
	if len(back) > 0 {
		m.client.Seek(back)
	}
	return back
}

// expect has the delivery of what was withheld watched, as checkRedelivery does. It comes after the
// check of what was not: of a partition that is still waited for from further before, nothing has
// come.
func (m *member) expect(back Offsets) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for number, at := range back {
		if p := m.partitions[number]; p != nil && p.returned == nowhere {
			p.returned = at.Offset
		}
	}
}

// dropPassedLocked forgets holds at records that will not come again: they are gone from the input,
// or another member has handled them before this one noticed that it had lost the partition.
func (m *member) dropPassedLocked(fetches kgo.Fetches) {
	first := make(map[int32]int64)
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		if len(f.Records) == 0 {
			return
		}
		if at, known := first[f.Partition]; !known || f.Records[0].Offset < at {
			first[f.Partition] = f.Records[0].Offset
		}
	})
	for p, at := range first {
		if h := m.heldLocked(p); h != nil && at > h.offset && !h.narrow {
			m.unholdLocked(p)
		}
	}
}

// cut returns the records that may be delivered now, and tells the offset of the first of the
// others. When the pause is over, the record itself may be.
func (h *hold) cut(records []*kgo.Record, now time.Time, withheld func(first int64)) []*kgo.Record {
	end := h.offset
	if !now.Before(h.until) {
		end++
	}
	at := slices.IndexFunc(records, func(r *kgo.Record) bool { return r.Offset >= end })
	if at < 0 {
		return records
	}
	withheld(records[at].Offset)
	return records[:at]
}
