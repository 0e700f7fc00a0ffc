package cassandra

import (
	"math"
	"sync/atomic"
)

// duplicateRatio follows the recent share of claims whose ID existed although it was no suspect:
// other processes claimed it, or this one did before it was started. A batch that would most likely
// fail is preceded by a read.
type duplicateRatio struct{ bits atomic.Uint64 }

// ratioWeight is the weight of one observed batch: about the last hundred batches count.
const ratioWeight = 0.02

func (r *duplicateRatio) observe(existing, total int) {
	if total == 0 {
		return
	}
	old := r.load()
	// Lost updates between goroutines do not matter to an estimate.
	r.bits.Store(math.Float64bits(old + ratioWeight*(float64(existing)/float64(total)-old)))
}

func (r *duplicateRatio) load() float64 { return math.Float64frombits(r.bits.Load()) }

// readFirst reports whether a batch of n claims more likely meets an existing ID than not.
func (r *duplicateRatio) readFirst(n int) bool {
	return math.Pow(1-r.load(), float64(n)) < 0.5
}
