package redrive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

// world is a rig, what was written on it, and what the pipeline has made of what came to the input.
type world struct {
	*rig
	random  *rand.Rand
	records map[string]*kgo.Record // by value, of which each record has its own
	read    map[dedup.Coordinates]bool
	clean   map[string]int // values that the pipeline has forwarded
	taken   map[string]bool
}

// Letters of all kinds, some of them written twice, are redriven again and again: by random
// selections, into either topic, with claims and releases that fail and processes that are
// interrupted. Then all are redriven. Nothing is twice, and each is there unless it is refused.
func TestRandomRedrivesLeaveNothingTwiceAndNothingOut(t *testing.T) {
	run := func(t *testing.T, brokers []string) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		w := &world{rig: newRig(t, brokers), random: rand.New(rand.NewPCG(seed, 1)),
			records: make(map[string]*kgo.Record), read: make(map[dedup.Coordinates]bool),
			clean: make(map[string]int), taken: make(map[string]bool)}
		for range 60 {
			w.write()
		}
		for range 25 {
			w.redrive()
			if w.random.IntN(3) == 0 {
				w.write()
			}
			w.pipeline()
		}
		for _, letters := range []string{w.dlq, w.dup} {
			o := w.options(Clean, letters)
			o.Conflicts = true
			w.rig.run(o)
		}
		w.pipeline()
		w.check()
	}
	for range testkit.Number(t, "KDEDUP_REDRIVE_RUNS", 3) {
		testkit.Kafkas(t, 1, run)
	}
}

// write makes a letter as a lane does.
func (w *world) write() {
	w.t.Helper()
	id := fmt.Sprintf("id-%d", w.random.IntN(25))
	record := w.record(id, fmt.Sprintf("%s: %d", id, w.next))
	w.records[string(record.Value)] = record
	times := 1 + w.random.IntN(5)/4
	switch kind := w.random.IntN(4); kind {
	case 0: // message_id finds more by now
		for range times {
			w.dead(record, absent)
		}
	case 1, 2:
		verdict := w.claim(record, w.own(record))
		if verdict == dedup.VerdictConflict {
			w.conflict(record, kind == 1, times)
			return
		}
		for range times {
			w.dead(record, forwarder.ReasonTooLarge)
		}
	case 3: // it was forwarded, and a later one was dropped
		if w.claim(record, w.own(record)) == dedup.VerdictFirst {
			w.clean[string(record.Value)]++
		} else {
			w.conflict(record, true, 1)
		}
		other := w.record(id, fmt.Sprintf("%s: %d", id, w.next))
		w.records[string(other.Value)] = other
		w.conflict(other, w.random.IntN(2) == 0, times)
	}
}

func (w *world) conflict(record *kgo.Record, dead bool, times int) {
	for range times {
		if dead {
			w.dead(record, "conflict")
		} else {
			w.dropped(record, forwarder.Note{Verdict: "conflict", Owned: true,
				ClaimedAt: time.Now()})
		}
	}
}

// redrive selects at random, and may fail anywhere.
func (w *world) redrive() {
	w.t.Helper()
	letters := []string{w.dlq, w.dup}[w.random.IntN(3)/2]
	o := w.options([]Into{Clean, Input}[w.random.IntN(2)], letters)
	o.BatchRecords, o.Limit = 1+w.random.IntN(9), int64(w.random.IntN(3)*w.random.IntN(9))
	o.DryRun, o.Conflicts = w.random.IntN(8) == 0, w.random.IntN(2) == 0
	switch w.random.IntN(4) {
	case 0:
		o.Select.Reasons = []string{[]string{absent, "missing_id", "conflict",
			forwarder.ReasonTooLarge}[w.random.IntN(4)]}
	case 1:
		o.Select.Partitions = []int32{w.random.Int32N(partitions)}
	case 2:
		first := w.random.Int64N(40)
		o.Select.Offsets = []OffsetRange{{first, first + w.random.Int64N(20)}}
	}
	ctx, interrupt := context.WithCancel(w.t.Context())
	defer interrupt()
	left := w.random.IntN(8)
	o.Store = failing{w.store, func(call string) error {
		if left--; left != 0 {
			return nil
		}
		if call == "claim" || w.random.IntN(2) == 0 { // claims are made again until the end
			interrupt()
		}
		return fmt.Errorf("the %s failed", call)
	}}
	report, err := Run(ctx, o)
	if err == nil {
		adds(w.t, report)
	} else if left > 0 {
		w.t.Errorf("nothing failed, and the redrive ends with %v", err)
	}
}

// pipeline judges what is new on the input.
func (w *world) pipeline() {
	w.t.Helper()
	for _, record := range w.rig.read(w.name) {
		at := dedup.Coordinates{TopicID: w.inputID, Partition: record.Partition,
			Offset: record.Offset}
		if w.read[at] {
			continue
		}
		w.read[at] = true
		switch v := w.claim(record, at); v {
		case dedup.VerdictFirst:
			w.clean[string(record.Value)]++
		case dedup.VerdictConflict:
			w.dead(record, "conflict")
		default:
			w.t.Errorf("%q came to the input and is judged %v", record.Value, v)
		}
	}
}

func (w *world) check() {
	w.t.Helper()
	for _, record := range w.rig.read(w.rig.clean) {
		value := string(record.Value)
		w.clean[value]++
		want := w.records[value]
		if string(record.Key) != string(want.Key) || !record.Timestamp.Equal(want.Timestamp) ||
			record.Partition != want.Partition {
			w.t.Errorf("%+v is not as it was: %+v", record, want)
		}
	}
	for value := range w.records {
		if n := w.clean[value]; n != 1 {
			w.t.Errorf("%q is %d times on the clean topic, want 1", value, n)
		}
	}
}
