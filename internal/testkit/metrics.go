package testkit

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Metrics are the series of the process, by the name of their family.
type Metrics map[string][]*dto.Metric

// ReadMetrics takes them from where Prometheus gets them.
func ReadMetrics(t testing.TB, gatherer prometheus.Gatherer) Metrics {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	m := make(Metrics)
	for _, family := range families {
		m[family.GetName()] = family.GetMetric()
	}
	return m
}

// With lists the series that have the labels, given as name and value in turn. They may have
// others.
func (m Metrics) With(name string, labels ...string) []*dto.Metric {
	return slices.DeleteFunc(slices.Clone(m[name]), func(metric *dto.Metric) bool {
		for i := 0; i < len(labels); i += 2 {
			if !HasLabel(metric, labels[i], labels[i+1]) {
				return true
			}
		}
		return false
	})
}

// HasLabel reports whether a series has the label.
func HasLabel(metric *dto.Metric, name, value string) bool {
	return slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool {
		return l.GetName() == name && l.GetValue() == value
	})
}

// Value adds up the series that have the labels; 0 if there is none.
func (m Metrics) Value(name string, labels ...string) float64 {
	sum := 0.0
	for _, metric := range m.With(name, labels...) {
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	}
	return sum
}
