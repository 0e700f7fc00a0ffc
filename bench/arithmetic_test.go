package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpreads(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
		text   string
	}{
		{nil, spread{}, "0"},
		{[]float64{7}, spread{7, 7, 7}, "7"},
		{[]float64{9, 1, 4}, spread{4, 1, 9}, "4 (1–9)"},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1, 4}, "2 (1–4)"},
	} {
		got := spreadOf(c.values)
		if got != c.want || got.text(decimals(0)) != c.text {
			t.Errorf("%v: got %+v, %s", c.values, got, got.text(decimals(0)))
		}
	}
}

func TestIdleAndWaitingCoresAreNotAtWork(t *testing.T) {
	const before = "cpu  100 10 50 9000 70 1 2 3 0 0"
	for _, c := range []struct {
		name, after string
		want        float64
	}{
		{"all idle", "cpu  100 10 50 9380 90 1 2 3 0 0", 0},
		{"each kind of work", "cpu  200 20 100 9200 70 11 22 13 0 0", 1},
		{"a kernel that tells nothing", "", 0},
	} {
		if got := busyCores(before, c.after, 2*time.Second); got != c.want {
			t.Errorf("%s: %v cores, want %v", c.name, got, c.want)
		}
	}
}

func TestPercentilesAreTheNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		sorted []time.Duration
		share  float64
		want   time.Duration
	}{
		{nil, 0.5, 0},
		{hundred[:1], 0.99, 1},
		{hundred, 0, 1},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred[:3], 0.5, 2},
		{hundred[:4], 0.5, 2},
	} {
		if got := percentile(c.sorted, c.share); got != c.want {
			t.Errorf("%v of %d: got %d, want %d", c.share, len(c.sorted), got, c.want)
		}
	}
}

func TestRatiosCompareWithinRounds(t *testing.T) {
	runs := []Run{
		{Contestant: "slow", Round: 1, Rate: 10}, {Contestant: "fast", Round: 1, Rate: 50},
		{Contestant: "slow", Round: 2, Rate: 1}, {Contestant: "fast", Round: 2, Rate: 10},
		{Contestant: "slow", Round: 3, Rate: 1},
		{Contestant: "fast", Round: 3, Rate: 99, Failure: "it fell over"},
		{Contestant: "slow", Round: 4, Rate: 1, Failure: "it fell over"},
		{Contestant: "fast", Round: 4, Rate: 99},
	}
	if diff := cmp.Diff([]float64{5, 10}, ratios(runs, "fast", "slow", rate)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := ratios(runs, "fast", "none", rate); got != nil {
		t.Errorf("compared with nobody: %v", got)
	}
}

func TestThousands(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 123456.7: "123,457",
		10_000_000: "10,000,000"} {
		if got := thousands(f); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
}

func TestMemoryOfAProcess(t *testing.T) {
	got, err := parseMemory(
		"Name:\tkdedup\nVmPeak:\t  999 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")
	if want := (memory{now: 1 << 20, peak: 2 << 20}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, status := range []string{"", "Name: a zombie\n", "VmHWM:\t1 kB\nVmRSS:\tmany kB\n"} {
		if _, err := parseMemory(status); err == nil {
			t.Errorf("%q: no error", status)
		}
	}
}

func TestCPUOfAProcess(t *testing.T) {
	const fields = "S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 11 0 1234"
	for _, name := range []string{"kdedup", "a b", "a) b (", ") R 1 2"} {
		got, err := parseCPU("4711 (" + name + ") " + fields)
		if err != nil || got != 2*time.Second {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for _, stat := range []string{"", "4711 (kdedup) S 1",
		"4711 (kdedup) S 1 2 3 4 5 6 7 8 9 10 x 50 0"} {
		if _, err := parseCPU(stat); err == nil {
			t.Errorf("%q: no error", stat)
		}
	}
}

func TestMemoryDuringARun(t *testing.T) {
	samples := []Sample{{1, 10, 50}, {2, 55, 60}, {3, 90, 70}}
	for committed, want := range map[int64]float64{0: 50, 10: 50, 11: 60, 60: 70, 100: 70} {
		if got := memoryAt(samples, committed); got != want {
			t.Errorf("after %d: got %v, want %v", committed, got, want)
		}
	}
}

func TestThePacerKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, p := time.Now(), newPacer(1000)
		defer p.stop()
		for range 51 {
			if !p.wait(t.Context()) {
				t.Fatal("it gave up")
			}
		}
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("51 events at 1000 a second took %v", took)
		}
	})
}
