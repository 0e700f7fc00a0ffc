package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/pipeline"
)

// Whoever misses a message asks which copies were dropped last, and for which owner.
func TestTheLastDroppedCopiesAreKept(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.lanes = 1
		began := time.Now().Add(-time.Second)
		r.produce(message(0, "a", "A"), message(0, "b", "B"))
		for range 30 {
			r.produce(message(0, "a", "A"))
		}
		r.produce(message(0, "b", "other"), &kgo.Record{Topic: input, Value: []byte("M")})
		run := r.start("one")
		r.waitCommitted(34)
		copies := run.DroppedCopies()
		if len(copies) != 20 {
			t.Fatalf("%d copies are kept, want 20", len(copies))
		}
		latest := fmt.Sprint(copies[0].ID, copies[0].Partition, copies[0].Offset,
			copies[0].Conflict, copies[0].Owner.Offset)
		if want := fmt.Sprint("b", 0, 32, true, 1); latest != want {
			t.Errorf("the latest is %s, want %s", latest, want)
		}
		for i, c := range copies[1:] {
			if c.ID != "a" || c.Conflict || c.Became != pipeline.Duplicate ||
				c.Offset != int64(31-i) || c.Owner.Offset != 0 {
				t.Errorf("copy %d is %+v", i+1, c)
			}
			if c.ClaimedAt.Before(began) || c.At.Before(c.ClaimedAt) {
				t.Errorf("copy %d was claimed %v and dropped %v", i+1, c.ClaimedAt, c.At)
			}
		}
	})
}

// What passes is no dropped copy.
func TestAnObservedCopyIsNotDropped(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.policy.Mode = pipeline.Observe
		r.produce(message(0, "a", "A"), message(0, "a", "A"))
		run := r.start("one")
		r.waitCommitted(2)
		if copies := run.DroppedCopies(); len(copies) > 0 {
			t.Errorf("%+v", copies)
		}
	})
}
