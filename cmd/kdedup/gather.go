package main

import "github.com/prometheus/client_golang/prometheus"

// outcomesOf returns kdedup_records_total by outcome.
func outcomesOf(gatherer prometheus.Gatherer) map[string]int {
	counts := make(map[string]int)
	families, err := gatherer.Gather()
	if err != nil {
		return counts // the next one may be whole
	}
	for _, family := range families {
		if family.GetName() != "kdedup_records_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "outcome" {
					counts[label.GetValue()] += int(metric.GetCounter().GetValue())
				}
			}
		}
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

// sumsOf returns the total seconds of each duration histogram.
func sumsOf(gatherer prometheus.Gatherer) map[string]float64 {
	sums := make(map[string]float64)
	families, err := gatherer.Gather()
	if err != nil {
		return sums // what a broken collector leaves out shows as zero
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			sums[family.GetName()] += metric.GetHistogram().GetSampleSum()
		}
	}
	return sums
}
