package pipeline_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
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
		if r.counter("kdedup_lane_failures_total") == 0 {
			t.Error("the lane did not join again")
		}
	})
}

// A record below the fence may never have been forwarded itself: it was dropped as a copy. When
// that copy's claim has ended, it claims its ID, and if its batch is then given back, it must not
// take its own claim for one that was forwarded.
func TestACopyThatClaimsAnewBelowTheFenceIsForwarded(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		store := memory.New(memory.Options{})
		r.store, r.lanes = store, 1
		r.produce(message(0, "a", "first"))
		if err := r.startAndFinish("one", 1); err != nil {
			t.Error(err)
		}
		// whose claim the fence settles
		r.produce(message(1, "a", "copy"), message(1, "z", "another"))
		if err := r.startAndFinish("one", 3); err != nil {
			t.Error(err)
		}
		scope := dedup.Scope{ConsumerGroup: group, Name: input, TTL: r.ttl, Buckets: 16}
		if err := store.Release(t.Context(), scope, "a"); err != nil {
			t.Fatal(err)
		}
		r.setOffset(1, 0)
		var refused oneRefusal
		r.join = func(s pipeline.Session) pipeline.Session {
			return &failing{s, refused.begin, func() error { return nil }}
		}
		r.start("one again")
		r.waitCommitted(3)
		if diff := cmp.Diff(
			[]string{"0:first", "1:another", "1:copy"}, r.texts(output),
		); diff != "" || !refused.given {
			t.Error(diff)
		}
	})
}
