package consumer

import (
	"testing"
	"time"
)

// A batch of n records of a KiB that took so long, or did not get through.
type attempt struct {
	took   time.Duration
	missed bool
}

func TestBatchesAreAsLargeAsTheirTimeHasRoomFor(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		name     string
		attempts []attempt
		want     int // records; most are 16000
	}{
		{"fast ones stay as configured", []attempt{{took: time.Second}, {took: time.Second}},
			16000},
		{"so do those that take a fifth of it", []attempt{{took: 6 * time.Second}}, 16000},
		{"a slow one is followed by one that takes a sixth of it",
			[]attempt{{took: 20 * time.Second}}, 4000},
		{"one that did not get through by a quarter", []attempt{{missed: true}}, 4000},
		{"and so on, as long as none gets through",
			[]attempt{{missed: true}, {missed: true}, {missed: true}}, 250},
		{"to a single record", []attempt{
			{missed: true}, {missed: true}, {missed: true}, {missed: true}, {missed: true},
			{missed: true}, {missed: true}, {missed: true}}, 1},
		{"fast ones make it larger", []attempt{{missed: true}, {took: time.Second}}, 6001},
		{"up to what is configured", []attempt{{missed: true}, {took: 1}, {took: 1}, {took: 1},
			{took: 1}, {took: 1}}, 16000},
		{"those in between let it be", []attempt{{missed: true}, {took: 5 * time.Second}}, 4000},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := NewBatchLimit(16000, 16000*kib, 30*time.Second, nil)
			for _, a := range c.attempts {
				batch := room.limits()
				if a.missed {
					room.timedOut(batch)
				} else {
					room.finished(batch, a.took)
				}
			}
			if got := room.limits().records; got != c.want {
				t.Errorf("%d records, want %d", got, c.want)
			}
		})
	}
}

func TestABatchThatWasNotFullDoesNotMakeRoom(t *testing.T) {
	room := NewBatchLimit(1000, 1<<20, time.Minute, nil)
	room.timedOut(room.limits())
	room.finished(amount{10, 10_000}, time.Millisecond)
	if got := room.limits(); got != (amount{250, 1 << 18}) {
		t.Errorf("%+v", got)
	}
}
