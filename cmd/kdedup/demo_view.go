package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/process"
)

// liveView shows the counts of the running processes.
type liveView struct {
	out       io.Writer
	processes []*process.Process
	terminal  bool
}

func newLiveView(out io.Writer, processes []*process.Process) *liveView {
	return &liveView{out: out, processes: processes, terminal: isTerminal(out)}
}

// watch returns when everything that was sent is committed, or ctx ends.
func (v *liveView) watch(ctx context.Context, t *traffic) error {
	interval := time.Second
	if v.terminal {
		interval = 100 * time.Millisecond
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last, lastAt := 0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		counts, sent, finished := outcomes(v.processes...), int(t.sent.Load()), t.done.Load()
		total := sum(counts)
		rate := float64(total-last) / time.Since(lastAt).Seconds()
		last, lastAt = total, time.Now()
		v.line(sent, counts, rate)
		if finished && total >= int(t.sent.Load()) {
			if v.terminal {
				fmt.Fprintln(v.out)
			}
			return nil
		}
	}
}

func (v *liveView) line(sent int, counts map[string]int, rate float64) {
	end := "\n"
	if v.terminal {
		end = "\x1b[K\r"
	}
	fmt.Fprintf(v.out, "produced %7d   forwarded %7d   duplicates %6d   %6.0f records/s%s",
		sent, counts["forwarded"], counts["duplicate"], rate, end)
}

// table is what the whole run did.
func (d *demo) table(
	processes []*process.Process, t *traffic, found check, took time.Duration,
) {
	counts := outcomes(processes...)
	fmt.Fprintln(d.out)
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, value any, note string) {
		fmt.Fprintf(table, "%s\t%v\t  %s\n", name, value, note)
	}
	row("records in", sum(counts), "")
	for _, p := range processes {
		row("by "+p.Config().Instance, sum(outcomes(p)), "")
	}
	row("first-seen", counts["forwarded"], fmt.Sprintf("of %d orders", t.orders))
	row("duplicates dropped", counts["duplicate"],
		"retries on other partitions, of either process, and a range that was sent again")
	row("forwarded", found.records, "on orders.clean")
	row("records/s", int(float64(sum(counts))/took.Seconds()), "paced by the producer, see --rate")
	row("lost", found.lost, "")
	row("doubled", found.doubled, "")
	row("changed", found.changed, "compared byte for byte")
	_ = table.Flush() // to a buffer and then d.out, whose errors the terminal shows
}

// outcomes are the records of the one pipeline of a demo or a measurement, by what became of them.
func outcomes(processes ...*process.Process) map[string]int {
	counts := make(map[string]int)
	for _, p := range processes {
		totals, _ := p.Totals(p.Config().Topics[0].Input)
		for outcome, n := range totals.Outcomes {
			counts[outcome] += int(n)
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
