package consumer

import "time"

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
