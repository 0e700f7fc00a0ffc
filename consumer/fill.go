package consumer

import (
	"context"
	"sync"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// fillTimeout is how long a batch fills at the most: its first records wait, and so does a
	// rebalance. Where the broker shares its processors with a busy store, a batch of 20,000
	// records takes some hundred milliseconds.
	fillTimeout = time.Second
	// behindTimeout is how long a batch waits for the next fetch of what lies behind it. It is
	// reached only when a broker that just answered does not answer again.
	behindTimeout = 100 * time.Millisecond
	// freshTimeout is how long a batch waits for what may have come: a few round trips to a broker
	// nearby.
	freshTimeout = 5 * time.Millisecond
)

// waitingBelow tells a poll whose records had been waiting in the client from one that waited for
// records.
const waitingBelow = time.Millisecond

// fill polls on while the batch has room and the broker has told of more: the store and the
// transaction cost less for each record of a large batch. At the end of the log it adds no delay.
// The batch grows by small fetches, so little more than the batch itself is in memory. Only the
// latest fetch says whether more is known: a partition whose broker is slow holds up no other.
//
// The client fetches ahead once, and then not until the next poll. If the records were waiting when
// they were polled, others came while the batch before was at work; they are fetched once, or they
// would wait for all of this batch too.
func (m *member) fill(ctx context.Context, fetches kgo.Fetches, waiting bool) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	room := m.opts.Limit.limits()
	for latest := fetches; ; waiting = false {
		room.records -= latest.NumRecords()
		timeout := fillingFor(latest, waiting)
		if timeout == 0 || room.records <= 0 || m.filled >= room.bytes {
			return fetches
		}
		latest = m.pollFor(ctx, timeout, room.records)
		m.filled += size(latest)
		fetches = append(fetches, latest...)
	}
}

// fillingFor is how long to poll again after a fetch, 0 if not at all.
func fillingFor(latest kgo.Fetches, waiting bool) time.Duration {
	switch {
	case moreBehind(latest):
		return behindTimeout
	case waiting:
		return freshTimeout
	}
	return 0
}

// pollFor polls for a time, whose end is no error.
func (m *member) pollFor(ctx context.Context, timeout time.Duration, records int) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fetches := m.client.Poll(ctx, records)
	if ctx.Err() != nil && fetches.NumRecords() == 0 {
		return nil // they tell only of ctx
	}
	return fetches
}

// moreBehind reports whether a partition had readable records behind the fetched ones.
func moreBehind(fetches kgo.Fetches) (more bool) {
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if n := len(p.Records); n > 0 && p.Records[n-1].Offset+1 < p.LastStableOffset {
			more = true
		}
	})
	return more
}

const (
	recordBytes = int(unsafe.Sizeof(kgo.Record{}))
	headerBytes = int(unsafe.Sizeof(kgo.RecordHeader{}))
)

// size is how many bytes the records take in memory. Of records without a value, or with a thousand
// empty headers, that is a multiple of what they are on the wire.
func size(fetches kgo.Fetches) (bytes int) {
	fetches.EachRecord(func(r *kgo.Record) {
		bytes += recordBytes + len(r.Key) + len(r.Value) + len(r.Headers)*headerBytes
		for _, h := range r.Headers {
			bytes += len(h.Key) + len(h.Value)
		}
	})
	return bytes
}

// BatchLimit is how much the batches of one lane may hold: what the configuration says, or as much
// as gets through in time where the broker is slow or has a quota for its producers
// (producer_byte_rate). It outlives the lane's sessions: a batch that was too large may have cost
// the one before.
//
// A batch has its time from Begin to Commit. With exactly_once that is a transaction's, which the
// broker ends after its timeout whatever was written; with at_least_once a rebalance waits for it.
type BatchLimit struct {
	time  time.Duration
	most  amount
	gauge prometheus.Gauge

	mu  sync.Mutex
	now amount
}

// amount is the size of a batch.
type amount struct{ records, bytes int }

// NewBatchLimit is that of a lane whose batches have so much time. The gauge shows it; it may be
// nil.
func NewBatchLimit(records, bytes int, time time.Duration, gauge prometheus.Gauge) *BatchLimit {
	r := &BatchLimit{time: time, most: amount{records, bytes}, gauge: gauge}
	r.setLocked(r.most)
	return r
}

const (
	// A batch that takes more than a third of its time would not survive a broker that is three
	// times as slow. Its successors get as much as takes a sixth.
	slowBatch, aimedBatch = 3, 6
	// The limit grows by half while its batches take less than a tenth of their time.
	fastBatch = 10
	// A batch that did not get through says nothing about how far it came. Two of these make 16 MiB
	// 1 MiB.
	cutBatch = 4
)

// Records are the most that a batch ever has.
func (r *BatchLimit) Records() int { return r.most.records }

// limits of the next batch.
func (r *BatchLimit) limits() amount {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// finished is told how long a batch took that got through.
func (r *BatchLimit) finished(batch amount, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case d > r.time/slowBatch:
		r.setLocked(batch.share(float64(r.time) / aimedBatch / float64(d)))
	case d < r.time/fastBatch && r.now != r.most && batch.fills(r.now):
		r.setLocked(amount{r.now.records + r.now.records/2 + 1, r.now.bytes + r.now.bytes/2 + 1})
	}
}

// timedOut is told that a batch did not get through in its time.
func (r *BatchLimit) timedOut(batch amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLocked(batch.share(1. / cutBatch))
}

func (r *BatchLimit) setLocked(a amount) {
	r.now = amount{min(max(a.records, 1), r.most.records), min(max(a.bytes, 1), r.most.bytes)}
	if r.gauge != nil {
		r.gauge.Set(float64(r.now.bytes))
	}
}

func (a amount) share(of float64) amount {
	return amount{int(of * float64(a.records)), int(of * float64(a.bytes))}
}

// fills reports whether a batch was as large as it might be.
func (a amount) fills(limits amount) bool {
	return a.records >= limits.records || a.bytes >= limits.bytes
}
