package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/server"
)

// metrics are the series of the process, by the name of their family.
type metrics map[string][]*dto.Metric

// readMetrics takes the counters and gauges from where Prometheus gets them, so that the page and the
// board cannot disagree.
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

// addDurations adds a topic's histogram to what other topics had.
func (m metrics) addDurations(sum *server.Durations, name, topic string) {
	for _, metric := range m.with(name, "topic", topic) {
		h := metric.GetHistogram()
		sum.Count, sum.Sum = sum.Count+h.GetSampleCount(), sum.Sum+h.GetSampleSum()
		for i, bucket := range h.GetBucket() {
			if i == len(sum.Bounds) {
				sum.Bounds, sum.Counts = append(sum.Bounds, bucket.GetUpperBound()), append(sum.Counts, 0)
			}
			sum.Counts[i] += bucket.GetCumulativeCount()
		}
	}
}

func partitionsNow(l pipeline.LaneState) []server.Partition {
	var all []server.Partition
	for _, a := range l.Assigned {
		all = append(all, server.Partition{Partition: a.Partition, Lane: l.Lane, DoneTo: a.Fence, Lag: a.Lag})
	}
	return all
}

func sortPartitions(all []server.Partition) {
	slices.SortFunc(all, func(a, b server.Partition) int { return cmp.Compare(a.Partition, b.Partition) })
}

// store adds up over the topics.
func (s *processStatus) store(m metrics) server.Store {
	var (
		now     = server.Store{Type: s.p.config.Store.Type, Blocked: []string{}}
		again   float64
		results = []string{"applied", "exists", "unclaimed"}
		totals  = make([]float64, len(results))
	)
	for _, t := range s.p.config.Topics {
		for i, result := range results {
			totals[i] += m.value("kdedup_claims_total", "result", result, "topic", t.Input)
		}
		again += m.value("kdedup_claims_ambiguous_total", "topic", t.Input)
		m.addDurations(&now.Batches, "kdedup_claim_duration_seconds", t.Input)
		for lane := range t.Lanes {
			if m.value("kdedup_store_blocked", "lane", strconv.Itoa(lane), "topic", t.Input) > 0 {
				now.Blocked = append(now.Blocked, t.Input+" lane "+strconv.Itoa(lane))
			}
		}
	}
	for i, result := range results {
		now.Claims = append(now.Claims, server.Count{Name: result, Total: totals[i]})
	}
	now.Facts = append(storeFacts(now.Type, m), server.Fact{Name: "claims_repeated", Value: again, Unit: "count"})
	return now
}

// storeFacts are the numbers that only one type of store has.
func storeFacts(kind string, m metrics) []server.Fact {
	if kind == config.StoreEmbedded {
		return []server.Fact{{Name: "disk_used", Value: m.value("kdedup_embedded_disk_bytes"), Unit: "bytes"}}
	}
	return []server.Fact{
		{Name: "requests_in_flight", Value: m.value("kdedup_cassandra_requests_in_flight"), Unit: "count"},
		{Name: "requests_in_flight_at_most", Value: m.value("kdedup_cassandra_requests_limit"), Unit: "count"},
		{Name: "requests_overloaded", Value: m.value("kdedup_cassandra_overloads_total"), Unit: "count"},
	}
}
