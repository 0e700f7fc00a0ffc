package report

import (
	"slices"
	"testing"
	"time"
)

func TestAxesHaveRoundNumbers(t *testing.T) {
	for of, want := range map[float64]float64{0.0167: 0.02, 1: 1, 1.01: 2, 3.2: 4, 5: 6, 7: 8,
		9:      10,
		61_000: 80_000, 100: 100, 0.3: 0.4} {
		if got := roundUp(of); got < want*0.999 || got > want*1.001 {
			t.Errorf("%v is rounded up to %v, want %v", of, got, want)
		}
	}
	start := time.Date(2026, 3, 1, 8, 3, 20, 0, time.UTC)
	for length, want := range map[time.Duration][]string{
		40 * time.Second: {"08:03:20", "08:03:30", "08:03:40", "08:03:50"},
		7 * time.Hour:    {"10:00", "12:00", "14:00"},
		30 * time.Hour: {"1 Mar 12:00", "1 Mar 18:00", "2 Mar 00:00", "2 Mar 06:00",
			"2 Mar 12:00"},
		5 * 24 * time.Hour: {"2 Mar", "3 Mar", "4 Mar", "5 Mar", "6 Mar"},
	} {
		var got []string
		for _, tick := range timeTicks(start, length) {
			got = append(got, tick.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the axis of %v has %q, want %q", length, got, want)
		}
	}
}
