package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/lab/torture"
)

// Torture is what became of the messages when a contestant's processes were killed.
type Torture struct {
	Contestant string `json:"contestant"`
	Round      int    `json:"round"`
	torture.Report
}

// torments say what is done to the processes.
type torments struct {
	kills            int
	during, patience time.Duration
}

// torture kills processes of a contestant while they work.
func (s *suite) torture(ctx context.Context, c contestant, v variant, round int) (Torture, error) {
	st := s.stage(c, v)
	// Each round has other kills.
	v.spec.Seed += uint64(round)
	found, err := func() (torture.Report, error) {
		if err := st.prepare(ctx, c, nil); err != nil {
			return torture.Report{}, err
		}
		return torture.Run(ctx, torture.Plan{
			Records: v.spec, Connection: st.connection(), Input: st.input(), Clean: st.output(),
			Command: c.command(st, torture.ProcessArg), Processes: v.processes,
			Kills: s.torments.kills, During: s.torments.during, Patience: s.torments.patience,
			Seed: v.spec.Seed, Step: func(string, ...any) {},
		})
	}()
	return Torture{c.name, round, found}, errors.Join(err, st.clear(ctx))
}

// tortureTable has one row for each run.
func tortureTable(runs []Torture) string {
	cells := [][]string{{"", "round", "kills", "on the clean topic", "lost", "doubled", "changed",
		"out of order"}}
	for _, r := range runs {
		kills := fmt.Sprint(r.Kills)
		if r.AtRest > 0 {
			kills += fmt.Sprintf(", %d at rest", r.AtRest)
		}
		row := []string{titleOf(r.Contestant), fmt.Sprint(r.Round), kills}
		for _, n := range []int{r.Clean.Records, r.Clean.Lost, r.Clean.Doubled, r.Clean.Changed,
			r.Clean.Misplaced} {
			row = append(row, thousands(float64(n)))
		}
		cells = append(cells, row)
	}
	return rows(cells)
}
