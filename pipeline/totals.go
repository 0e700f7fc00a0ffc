package pipeline

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/internal/telemetry"
)

// Totals is what the lanes of an input have counted since the process began. /metrics has the same
// numbers.
type Totals struct {
	Outcomes map[string]float64 // records of committed batches, by Outcome
	Verdicts map[string]float64 // the same records, by dedup.Verdict
	Batches  map[string]float64 // by result, see Results
	Refused  float64            // of the same records, those that the clean topic did not take
	Failures float64            // sessions that ended with an error
	InHand   map[string]float64 // records of the batch that a lane works on, by the lane's number

	ForwardSeconds, CommitSeconds float64
}

// Totals reads them.
func (c *Collectors) Totals(input string) Totals {
	its := prometheus.Labels{"topic": input}
	return Totals{
		Outcomes: telemetry.Totals(c.records, its, "outcome"),
		Verdicts: telemetry.Totals(c.verdicts, its, "verdict"),
		Batches:  telemetry.Totals(c.batches, its, "result"),
		Refused:  telemetry.Totals(c.undeliverable, its, "")[""],
		Failures: telemetry.Totals(c.failures, its, "")[""],
		InHand:   telemetry.Totals(c.inFlight, its, "lane"),

		ForwardSeconds: durations(c.forwardSeconds, its),
		CommitSeconds:  durations(c.commitSeconds, its),
	}
}

func durations(family prometheus.Collector, labels prometheus.Labels) (sum float64) {
	for _, series := range telemetry.Series(family, labels) {
		sum += series.GetHistogram().GetSampleSum()
	}
	return sum
}

// Results are those of batches, in the order in which they are shown.
func Results() []string { return []string{resultCommitted, resultAborted, resultFailed} }
