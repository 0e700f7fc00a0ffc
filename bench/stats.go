package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// spread is the middle and the ends of some measurements.
type spread struct{ Median, Min, Max float64 }

// spreadOf is zero without values. The median of an even number is the mean of the two in the
// middle.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return spread{median, sorted[0], sorted[len(sorted)-1]}
}

// text shows the ends only where there is more than one value.
func (s spread) text(format func(float64) string) string {
	if s.Min == s.Max {
		return format(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", format(s.Median), format(s.Min), format(s.Max))
}

// ratios compares a contestant with another within each round, so that what changes on the machine
// between rounds does not count.
func ratios(runs []Run, of, against string, value func(Run) float64) []float64 {
	base := make(map[int]float64)
	for _, r := range runs {
		if r.Contestant == against && r.Failure == "" {
			base[r.Round] = value(r)
		}
	}
	var all []float64
	for _, r := range runs {
		if b := base[r.Round]; r.Contestant == of && r.Failure == "" && b > 0 {
			all = append(all, value(r)/b)
		}
	}
	return all
}

// valuesOf are those of one contestant's runs that did not fail.
func valuesOf(runs []Run, contestant string, value func(Run) float64) []float64 {
	var all []float64
	for _, r := range runs {
		if r.Contestant == contestant && r.Failure == "" {
			all = append(all, value(r))
		}
	}
	return all
}

// percentile of sorted durations by the nearest rank: the least one that so large a share of them
// does not exceed.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share*float64(len(sorted)) - 1e-9)) // 0.99 * 100 is a little more than 99
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// thousands is 1234567 as "1,234,567".
func thousands(f float64) string {
	digits := fmt.Sprintf("%.0f", f)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func decimals(n int) func(float64) string {
	return func(f float64) string { return fmt.Sprintf("%.*f", n, f) }
}

// distinct lists the contestants in the order in which they first ran.
func distinct(runs []Run) []string {
	var names []string
	for _, r := range runs {
		if !slices.Contains(names, r.Contestant) {
			names = append(names, r.Contestant)
		}
	}
	return names
}

func most(runs []Run, contestant string, value func(Run) int) (n int) {
	for _, r := range runs {
		if r.Contestant == contestant {
			n = max(n, value(r))
		}
	}
	return n
}
