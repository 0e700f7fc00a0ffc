package claimmetrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/internal/telemetry"
)

// Totals is what the dedupers of an input have counted since the process began. /metrics has the
// same numbers.
type Totals struct {
	Claims map[string]float64 // by result, see Results
	// claims that were claimed again, because their outcome stayed unknown
	Ambiguous  float64
	Blocked    []string  // the lanes that wait for the store to decide claims
	Unresolved []string  // the lanes that wait for the schema registry
	Batches    Durations // of batches of claims
}

// Durations is a histogram.
type Durations struct {
	Bounds []float64 // in seconds, rising
	Counts []uint64  // durations up to each bound
	Count  uint64
	Sum    float64 // in seconds
}

// Totals reads them.
func (c *Collectors) Totals(input string) Totals {
	its := prometheus.Labels{"topic": input}
	t := Totals{
		Claims:    telemetry.Totals(c.claims, its, "result"),
		Ambiguous: telemetry.Totals(c.ambiguous, its, "")[""],
	}
	for lane, blocked := range telemetry.Totals(c.blocked, its, "lane") {
		if blocked > 0 {
			t.Blocked = append(t.Blocked, lane)
		}
	}
	slices.Sort(t.Blocked)
	c.mu.Lock()
	defer c.mu.Unlock()
	for lane, wait := range c.registry[input] {
		if wait.Runs() {
			t.Unresolved = append(t.Unresolved, lane)
		}
	}
	slices.Sort(t.Unresolved)
	for _, series := range telemetry.Series(c.seconds, its) { // one
		h := series.GetHistogram()
		t.Batches.Count, t.Batches.Sum = h.GetSampleCount(), h.GetSampleSum()
		for _, bucket := range h.GetBucket() {
			t.Batches.Bounds = append(t.Batches.Bounds, bucket.GetUpperBound())
			t.Batches.Counts = append(t.Batches.Counts, bucket.GetCumulativeCount())
		}
	}
	return t
}

// Results are those of claims, in the order in which they are shown.
func Results() []string { return []string{resultApplied, resultExists, resultUnclaimed} }
