package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/lab/workload"
)

// rows makes a Markdown table; the first row is the head.
func rows(cells [][]string) string {
	var b strings.Builder
	for i, row := range cells {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

// runsTable has one row for each variant and contestant.
func runsTable(runs []Run, m mode) string {
	head := []string{"", "records/s", "CPU µs/record", "Kafka's / store's", "peak RSS MiB",
		"start s", "lost", "doubled", "changed", "out of order"}
	if m.tail {
		head = append(head, "RSS MiB after 10 / 50 / 100 %")
	}
	compared := basesOf(runs, m)
	for _, base := range compared {
		head = append(head, base+" is … times as fast")
	}
	cells := [][]string{head}
	for _, variant := range variantsOf(runs) {
		ofVariant := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
			return r.Variant != variant
		})
		for _, name := range distinct(ofVariant) {
			row := runRow(ofVariant, variant, name)
			if m.tail {
				row = append(row, memoryText(ofVariant, name))
			}
			for _, base := range compared {
				row = append(row, spreadOf(ratios(ofVariant, base, name, rate)).ratioText())
			}
			cells = append(cells, row)
		}
	}
	return rows(cells)
}

// basesOf are those that have run of the contestants with which a mode compares the others.
func basesOf(runs []Run, m mode) []string {
	return slices.DeleteFunc(slices.Clone(m.bases), func(name string) bool {
		return !slices.Contains(distinct(runs), name)
	})
}

func rate(r Run) float64 { return r.Rate }

func runRow(runs []Run, variant, name string) []string {
	column := func(format func(float64) string, value func(Run) float64) string {
		values := valuesOf(runs, name, value)
		if len(values) == 0 {
			return "failed"
		}
		return spreadOf(values).text(format)
	}
	count := func(value func(workload.Found) int) string {
		if !slices.ContainsFunc(runs, func(r Run) bool {
			return r.Contestant == name && r.Found != nil
		}) {
			return "–"
		}
		return thousands(float64(most(runs, name, func(r Run) int {
			if r.Found == nil {
				return 0
			}
			return value(*r.Found)
		})))
	}
	return []string{
		strings.TrimPrefix(variant+": ", ": ") + titleOf(name),
		column(thousands, rate),
		column(decimals(1), func(r Run) float64 { return r.CPUMicros }),
		middle(runs, name, func(r Run) float64 { return r.KafkaMicros }) + " / " +
			middle(runs, name, func(r Run) float64 { return r.StoreMicros }),
		column(decimals(0), func(r Run) float64 { return r.PeakMiB }),
		column(decimals(1), func(r Run) float64 { return r.StartSeconds }),
		count(func(f workload.Found) int { return f.Lost }),
		count(func(f workload.Found) int { return f.Doubled }),
		count(func(f workload.Found) int { return f.Changed }),
		count(func(f workload.Found) int { return f.Misplaced }),
	}
}

// middle is a median without its ends, "–" for what was not measured.
func middle(runs []Run, name string, value func(Run) float64) string {
	median := spreadOf(valuesOf(runs, name, value)).Median
	if median == 0 {
		return "–"
	}
	return decimals(1)(median)
}

func (s spread) ratioText() string {
	if s == (spread{}) {
		return "–"
	}
	return s.text(decimals(2))
}

func titleOf(name string) string {
	for _, c := range everybody() {
		if c.name == name {
			return c.title
		}
	}
	return name
}

func variantsOf(runs []Run) []string {
	var all []string
	for _, r := range runs {
		if !slices.Contains(all, r.Variant) {
			all = append(all, r.Variant)
		}
	}
	return all
}

// memoryText is that of the contestant's last run: of the first sample at or after each share.
func memoryText(runs []Run, name string) string {
	var text string
	for _, r := range runs {
		if r.Contestant == name && len(r.Memory) > 0 {
			var at []string
			for _, share := range []float64{0.1, 0.5, 1} {
				at = append(at, fmt.Sprintf("%.0f",
					memoryAt(r.Memory, int64(share*float64(r.Spec.Records)))))
			}
			text = strings.Join(at, " / ")
		}
	}
	return text
}

// memoryAt is the last sample's when none comes so late.
func memoryAt(samples []Sample, committed int64) float64 {
	for _, s := range samples {
		if s.Committed >= committed {
			return s.MiB
		}
	}
	return samples[len(samples)-1].MiB
}

// latencyTable has one row for each contestant.
func latencyTable(all []Latency) string {
	cells := [][]string{{"", "offered records/s", "p50 ms", "p99 ms", "max ms", "CPU % of a core",
		"idle CPU % of a core", "idle RSS MiB"}}
	for _, name := range latencyNames(all) {
		column := func(format func(float64) string, value func(Latency) float64) string {
			var values []float64
			for _, l := range all {
				if l.Contestant == name {
					values = append(values, value(l))
				}
			}
			return spreadOf(values).text(format)
		}
		cells = append(cells, []string{
			titleOf(name),
			column(thousands, func(l Latency) float64 { return float64(l.Offered) }),
			column(decimals(1), func(l Latency) float64 { return l.P50 }),
			column(decimals(1), func(l Latency) float64 { return l.P99 }),
			column(decimals(1), func(l Latency) float64 { return l.Max }),
			column(decimals(1), func(l Latency) float64 { return l.CPU }),
			column(decimals(2), func(l Latency) float64 { return l.IdleCPU }),
			column(decimals(0), func(l Latency) float64 { return l.IdleMiB }),
		})
	}
	return rows(cells)
}

func latencyNames(all []Latency) []string {
	var runs []Run
	for _, l := range all {
		runs = append(runs, Run{Contestant: l.Contestant})
	}
	return distinct(runs)
}
