package server

import (
	"math"
	"time"
)

const (
	// historyLength times the interval is what the charts show: five minutes.
	historyLength = 150
	// averaged is over how many intervals "per second" is taken: ten seconds.
	averaged = 5
)

// history is the recent values of something, one for each interval.
type history struct{ values []float64 }

func (h *history) push(v float64) {
	if len(h.values) == historyLength {
		copy(h.values, h.values[1:])
		h.values = h.values[:historyLength-1]
	}
	h.values = append(h.values, v)
}

// shown is a copy with three significant digits; empty when nothing happened, which is what most
// series look like.
func (h *history) shown() []float64 {
	shown, some := make([]float64, len(h.values)), false
	for i, v := range h.values {
		shown[i] = threeDigits(v)
		some = some || v != 0
	}
	if !some {
		return []float64{}
	}
	return shown
}

func threeDigits(v float64) float64 {
	if v < 1000 {
		return math.Round(v*100) / 100
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(v/unit) * unit
}

// counter turns a growing total into a rate.
type counter struct {
	history
	total  float64
	totals history // where each interval began
}

// set takes the total after another interval. A counter that is first seen after the first interval
// has begun at zero since, and so has one that is lower than before: its pipeline began again.
func (c *counter) set(total float64, interval time.Duration) {
	if interval > 0 && total < c.total {
		c.total = 0
	}
	if interval > 0 {
		c.push((total - c.total) / interval.Seconds())
		c.totals.push(c.total)
	}
	c.total = total
}

// perSecond is the average of the last intervals, nil before the first one ended.
func (c *counter) perSecond() *float64 {
	recent := c.values[max(0, len(c.values)-averaged):]
	if len(recent) == 0 {
		return nil
	}
	mean := meanOf(recent)
	return &mean
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// recent is by how much it grew in the time that the charts show.
func (c *counter) recent() float64 {
	if len(c.totals.values) == 0 {
		return 0
	}
	return max(0, c.total-c.totals.values[0])
}

func (c *counter) shownAs(name string) rate {
	return rate{Name: name, Total: c.total, PerSecond: c.perSecond(), History: c.shown()}
}

// between is what happened since an earlier state of the histogram.
func between(earlier, now Durations) latency {
	n := now.Count - earlier.Count
	if n == 0 || now.Count < earlier.Count {
		return latency{}
	}
	mean := (now.Sum - earlier.Sum) / float64(n)
	return latency{Mean: &mean, P99: atMost(earlier, now, 0.99)}
}

// atMost is the lowest bound that a share of the durations kept. It is nil when that lies beyond
// the last bound.
func atMost(earlier, now Durations, share float64) *float64 {
	need := uint64(math.Ceil(share * float64(now.Count-earlier.Count)))
	for i, bound := range now.Bounds {
		before := uint64(0)
		if i < len(earlier.Counts) {
			before = earlier.Counts[i]
		}
		if now.Counts[i]-before >= need {
			return &bound
		}
	}
	return nil
}
