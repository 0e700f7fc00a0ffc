package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// lagWatch compares the committed offsets with the ends of the assigned partitions, also while the
// lane is blocked and polls nothing: that is when the lag is of interest.
type lagWatch struct {
	member *member
	cancel context.CancelFunc
	done   sync.WaitGroup
}

const lagInterval = 5 * time.Second

func watchLag(m *member) *lagWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &lagWatch{member: m, cancel: cancel}
	w.done.Go(func() {
		pause.Every(ctx, lagInterval, func() { w.update(ctx) })
	})
	return w
}

// stop ends the watch and takes its series away.
func (w *lagWatch) stop() {
	w.cancel()
	w.done.Wait()
	for _, p := range w.member.owned() {
		w.member.opts.Metrics.forgetPartition(p)
	}
}

// update leaves the old values where the broker does not answer.
func (w *lagWatch) update(ctx context.Context) {
	partitions := w.member.owned()
	if len(partitions) == 0 {
		return
	}
	bounds, err := w.member.client.Bounds(ctx)
	if err != nil {
		return
	}
	committed := w.member.client.Committed()
	for _, p := range partitions {
		log, ok := bounds[p]
		if !ok {
			continue
		}
		at, _ := w.member.position(committed, p)
		at = max(log.First, at)
		w.member.noteLag(p, at, max(log.End-at, 0))
		w.member.noteHidden(p, log, time.Now())
	}
	w.member.warnOfHidden()
	w.member.wakeForFences(committed)
}

// position is the group's offset of a partition as this session has it: from when its fence was
// read, and after its own commits. Before, the client may know it. It is not known of one that came
// just now.
func (m *member) position(client Offsets, partition int32) (at int64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.partitions[partition]; p != nil && p.done != nowhere {
		return p.done, true
	}
	offset, known := client[partition]
	return offset.Offset, known
}

// hidden is what lies behind an open transaction of a producer. Nobody reads it before that ends,
// and no lag tells of it: a producer that hangs holds up a partition that looks idle.
type hidden struct {
	stable  int64     // the last stable offset
	since   time.Time // when it was first seen to stand there
	records int64
}

// hiddenLong is how long a transaction is open before it is worth a warning. Those of Kafka Streams
// last a tenth of a second, and most producers' are ended by their coordinator after a minute.
const hiddenLong = time.Minute

// noteHidden is told each measurement of an assigned partition.
func (m *member) noteHidden(partition int32, log Bounds, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.partitions[partition]
	if p == nil {
		return
	}
	h := p.hidden
	if h == nil || h.stable != log.End {
		h = &hidden{stable: log.End, since: now}
	}
	if h.records = log.High - log.End; h.records > 0 {
		p.hidden = h
	} else {
		p.hidden, h = nil, &hidden{since: now}
	}
	m.opts.Metrics.hidden.set(partition, float64(h.records))
	m.opts.Metrics.hiddenFor.set(partition, now.Sub(h.since).Seconds())
}

// warnOfHidden says it at each measurement; the log keeps equal lines to one a minute.
func (m *member) warnOfHidden() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, number := range m.ownedLocked() {
		if h := m.partitions[number].hidden; h != nil && time.Since(h.since) >= hiddenLong {
			m.opts.Logger.Warn("records wait behind a transaction that a producer has left open; "+
				"kafka-transactions.sh find-hanging finds it", "partition", number,
				"from", h.stable, "records", h.records)
		}
	}
}
