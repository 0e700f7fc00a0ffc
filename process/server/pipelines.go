package server

import (
	"fmt"
	"slices"
	"time"
)

func (s *sampler) pipeline(p Pipeline, now time.Time, interval time.Duration) pipelineStatus {
	shown := pipelineStatus{Pipeline: p}
	shown.Outcomes, shown.Records = s.rates(p.Input, "records", p.Outcomes, interval)
	shown.Verdicts, _ = s.rates(p.Input, "verdicts", p.Verdicts, interval)
	shown.Batches, _ = s.rates(p.Input, "batches", p.Batches, interval)
	shown.Duplicates = s.duplicates(p.Input, Count{Name: "duplicates",
		Total: total(p.Verdicts, "duplicate", "conflict")}, interval)
	shown.Problems = s.problems(p, interval)
	shown.Lag, shown.State = s.lag(p.Input, p.Partitions), stateOf(p)
	if shown.Partitions == nil {
		shown.Partitions = []Partition{}
	}
	for _, l := range p.Lanes {
		shown.Lanes = append(shown.Lanes, s.lane(p.Input, l, now))
	}
	return shown
}

// duplicates follows those of a pipeline, or of all, whose records are followed already.
func (s *sampler) duplicates(of string, all Count, interval time.Duration) duplicates {
	_, shown := s.rates(of, "duplicates", []Count{all}, interval)
	made := duplicates{rate: shown}
	if records := s.counter(of + "\x00records").recent(); records > 0 {
		share := s.counter(of+"\x00duplicates").recent() / records
		made.Share = &share
	}
	return made
}

// problems are of a pipeline whose verdicts are followed already.
func (s *sampler) problems(p Pipeline, interval time.Duration) (found problems) {
	undeliverable := s.counter(p.Input + "\x00undeliverable")
	undeliverable.set(p.Undeliverable, interval)
	found.Undeliverable = undeliverable.recent()
	found.Missing = s.counter(p.Input + "\x00verdicts\x00missing").recent()
	found.Conflicts = s.counter(p.Input + "\x00verdicts\x00conflict").recent()
	found.Held = len(held([]Pipeline{p}))
	found.Count = found.Missing + found.Conflicts + found.Undeliverable + float64(found.Held)
	return found
}

// held lists the partitions that wait at a record that can be delivered nowhere.
func held(pipelines []Pipeline) []string {
	all := []string{}
	for _, p := range pipelines {
		for _, partition := range p.Partitions {
			if partition.Held != "" {
				all = append(all,
					fmt.Sprintf("%s[%d] %s", p.Input, partition.Partition, partition.Held))
			}
		}
	}
	return all
}

// statesOfLanes, the worst one first.
var statesOfLanes = []string{LaneStopped, LaneFailing, LaneBlocked, PipelineHeld, LaneJoining,
	LaneRunning}

// stateOf is the worst state of a pipeline's lanes; a held partition is worse than a lane that is
// still to join.
func stateOf(p Pipeline) string {
	worst := len(statesOfLanes) - 1
	if len(p.Lanes) == 0 {
		worst = slices.Index(statesOfLanes, LaneJoining)
	}
	for _, l := range p.Lanes {
		worst = min(worst, slices.Index(statesOfLanes, l.State))
	}
	if len(held([]Pipeline{p})) > 0 {
		worst = min(worst, slices.Index(statesOfLanes, PipelineHeld))
	}
	return statesOfLanes[worst]
}

// lag is the sum of the partitions whose lag is known.
func (s *sampler) lag(of string, partitions []Partition) lagging {
	lags := make([]*int64, len(partitions))
	hidden := int64(0)
	for i, p := range partitions {
		lags[i] = p.Lag
		hidden += p.Hidden
	}
	return s.sumOfLags(of, lags, hidden)
}

func (s *sampler) sumOfLags(of string, lags []*int64, hidden int64) lagging {
	if s.lags[of] == nil {
		s.lags[of] = &history{}
	}
	var sum *int64
	for _, lag := range lags {
		if lag != nil && sum == nil {
			sum = new(int64)
		}
		if lag != nil {
			*sum += *lag
		}
	}
	if sum != nil {
		s.lags[of].push(float64(*sum))
	}
	return lagging{Records: sum, Hidden: hidden, History: s.lags[of].shown()}
}

func (s *sampler) lane(of string, l Lane, now time.Time) laneStatus {
	shown := laneStatus{Lane: l,
		Since: moment{s.since(fmt.Sprint("lane ", l.Lane, " of ", of), l.State, now), now}}
	if f := l.Failure; f != nil {
		shown.Failure = &failureStatus{Text: s.clean(f.Text), Hint: f.Hint, At: moment{f.At, now}}
	}
	return shown
}

// total is that of the counters with these names.
func total(counts []Count, names ...string) (sum float64) {
	for _, c := range counts {
		if slices.Contains(names, c.Name) {
			sum += c.Total
		}
	}
	return sum
}
