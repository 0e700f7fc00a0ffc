package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Series reads the series of a family that have the labels, as a scrape would find them.
func Series(family prometheus.Collector, labels prometheus.Labels) (found []*dto.Metric) {
	collected := make(chan prometheus.Metric)
	go func() { // it ends with Collect
		defer close(collected)
		family.Collect(collected)
	}()
	for metric := range collected {
		series := &dto.Metric{}
		if metric.Write(series) == nil && has(series, labels) {
			found = append(found, series)
		}
	}
	return found
}

func has(series *dto.Metric, labels prometheus.Labels) bool {
	for name, value := range labels {
		if Label(series, name) != value {
			return false
		}
	}
	return true
}

// Label is the value of a series' label, empty if it has none of the name.
func Label(series *dto.Metric, name string) string {
	at := slices.IndexFunc(series.GetLabel(), func(l *dto.LabelPair) bool {
		return l.GetName() == name
	})
	if at < 0 {
		return ""
	}
	return series.GetLabel()[at].GetValue()
}

// Totals adds up counters and gauges that have the labels, by the values of another label. Without
// one all are in "".
func Totals(family prometheus.Collector, labels prometheus.Labels, by string) map[string]float64 {
	sums := make(map[string]float64)
	for _, series := range Series(family, labels) {
		sums[Label(series, by)] += series.GetCounter().GetValue() + series.GetGauge().GetValue()
	}
	return sums
}

// Total adds up all series of a family of counters or gauges.
func Total(family prometheus.Collector) float64 { return Totals(family, nil, "")[""] }
