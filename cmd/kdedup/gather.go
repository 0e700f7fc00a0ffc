package main

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/kdedup/kdedup/pipeline"
)

// metrics are the series of the process, by the name of their family.
type metrics map[string][]*dto.Metric

// readMetrics takes them from where Prometheus gets them, so that what is shown and the boards cannot
// disagree.
func readMetrics(gatherer prometheus.Gatherer) metrics {
	families, _ := gatherer.Gather() // what a broken collector leaves out shows as zero; /metrics tells
	m := make(metrics)
	for _, family := range families {
		m[family.GetName()] = family.GetMetric()
	}
	return m
}

// with lists the series that have the labels, given as name and value in turn. They may have others.
func (m metrics) with(name string, labels ...string) []*dto.Metric {
	return slices.DeleteFunc(slices.Clone(m[name]), func(metric *dto.Metric) bool {
		for i := 0; i < len(labels); i += 2 {
			if !hasLabel(metric, labels[i], labels[i+1]) {
				return true
			}
		}
		return false
	})
}

func hasLabel(metric *dto.Metric, name, value string) bool {
	return slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool {
		return l.GetName() == name && l.GetValue() == value
	})
}

// value adds up the series that have the labels; 0 if there is none.
func (m metrics) value(name string, labels ...string) float64 {
	sum := 0.0
	for _, metric := range m.with(name, labels...) {
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	}
	return sum
}

// seconds adds up the durations of all series of a histogram.
func (m metrics) seconds(name string) float64 {
	sum := 0.0
	for _, metric := range m[name] {
		sum += metric.GetHistogram().GetSampleSum()
	}
	return sum
}

// outcomesOf returns kdedup_records_total by outcome.
func outcomesOf(gatherer prometheus.Gatherer) map[string]int {
	counts, m := make(map[string]int), readMetrics(gatherer)
	for _, o := range pipeline.Outcomes() {
		counts[o.String()] = int(m.value("kdedup_records_total", "outcome", o.String()))
	}
	return counts
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
