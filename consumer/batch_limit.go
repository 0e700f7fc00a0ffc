package consumer

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
