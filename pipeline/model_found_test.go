package pipeline_test

import (
	"errors"
	"testing"

	"github.com/kdedup/kdedup/pipeline"
)

// What the model test found, on the fake Kafka.

// While offsets that were set back are read again, batches end below the fence. A fence that went
// back with them would make the next session forward the rest again.
func TestARewindSurvivesARestartInItsMiddle(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		const n = 500
		r.batch, r.lanes = 50, 1
		r.produce(orders(n, 11)...)
		if err := r.startAndFinish("one", n); err != nil {
			t.Error(err)
		}
		r.rewind()
		begin := sometimes(3, errors.New("no"))
		r.join = func(s pipeline.Session) pipeline.Session {
			return &failing{s, begin, func() error { return nil }}
		}
		r.start("one again")
		r.waitCommitted(n)
		r.checkClean(true)
		if r.counter("kdedup_lane_failures_total", nil) == 0 {
			t.Error("the lane did not join again")
		}
	})
}
