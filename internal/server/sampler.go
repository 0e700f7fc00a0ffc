package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// sampler asks the source in equal intervals and keeps what the charts need. All requests get what
// it saw last, so the work does not grow with the number of those who look, and the charts are
// there when somebody opens the page in an emergency.
type sampler struct {
	source Source
	about  About
	probes *prober
	clean  func(string) string
	latest atomic.Pointer[status]

	// Owned by the goroutine that calls sample.
	last     time.Time
	counters map[string]*counter
	lags     map[string]*history
	states   map[string]sighting
	batches  []Durations // the last few, the oldest first
}

// ofStore is whose counters are the store's. No topic has a name with a space.
const ofStore = "the store"

// sighting is a state and when it was first seen.
type sighting struct {
	state string
	since time.Time
}

func newSampler(o Options, probes *prober, clean func(string) string) *sampler {
	return &sampler{
		source: o.Source, about: o.About, probes: probes, clean: clean,
		counters: make(map[string]*counter), lags: make(map[string]*history),
		states: make(map[string]sighting),
	}
}

// run samples until ctx ends. The caller has taken the first one.
func (s *sampler) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.sample(now)
		}
	}
}

// sample makes the status of now.
func (s *sampler) sample(now time.Time) {
	snap := s.source.Snapshot()
	s.forgetOthers(snap.Pipelines)
	interval := now.Sub(s.last)
	if s.last.IsZero() {
		interval = 0
	}
	s.last = now
	made := &status{Time: moment{now, now}, About: s.about,
		Configured: moment{snap.Configured, now}}
	made.State, made.Checks = s.probes.results(now)
	for _, p := range snap.Pipelines {
		made.Pipelines = append(made.Pipelines, s.pipeline(p, now, interval))
	}
	made.Totals = s.totals(made.Pipelines, interval)
	made.Store = s.store(snap.Store, made.Checks, now, interval)
	made.Events = s.events(snap.Events, now)
	s.latest.Store(made)
}

func (s *sampler) counter(key string) *counter {
	if s.counters[key] == nil {
		s.counters[key] = &counter{}
	}
	return s.counters[key]
}

// rates follows some counters, and their sum under the name of their kind.
func (s *sampler) rates(
	of, kind string, counts []Count, interval time.Duration,
) (shown []rate, sum rate) {
	total := 0.0
	for _, c := range counts {
		follow := s.counter(of + "\x00" + kind + "\x00" + c.Name)
		follow.set(c.Total, interval)
		shown = append(shown, follow.shownAs(c.Name))
		total += c.Total
	}
	all := s.counter(of + "\x00" + kind)
	all.set(total, interval)
	return shown, all.shownAs(kind)
}

func (s *sampler) pipeline(p Pipeline, now time.Time, interval time.Duration) pipelineStatus {
	shown := pipelineStatus{Pipeline: p}
	shown.Outcomes, shown.Records = s.rates(p.Input, "records", p.Outcomes, interval)
	shown.Verdicts, _ = s.rates(p.Input, "verdicts", p.Verdicts, interval)
	shown.Batches, _ = s.rates(p.Input, "batches", p.Batches, interval)
	shown.Lag = s.lag(p.Input, p.Partitions)
	if shown.Partitions == nil {
		shown.Partitions = []Partition{}
	}
	for _, l := range p.Lanes {
		shown.Lanes = append(shown.Lanes, s.lane(p.Input, l, now))
	}
	return shown
}

// lag is the sum of the partitions whose lag is known.
func (s *sampler) lag(of string, partitions []Partition) lagging {
	lags := make([]*int64, len(partitions))
	for i, p := range partitions {
		lags[i] = p.Lag
	}
	return s.sumOfLags(of, lags)
}

func (s *sampler) sumOfLags(of string, lags []*int64) lagging {
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
	return lagging{Records: sum, History: s.lags[of].shown()}
}

func (s *sampler) lane(of string, l Lane, now time.Time) laneStatus {
	shown := laneStatus{Lane: l,
		Since: moment{s.since(fmt.Sprint("lane ", l.Lane, " of ", of), l.State, now), now}}
	if f := l.Failure; f != nil {
		shown.Failure = &failureStatus{Text: s.clean(f.Text), Hint: f.Hint, At: moment{f.At, now}}
	}
	return shown
}

// since is when something was first seen in its present state.
func (s *sampler) since(what, state string, now time.Time) time.Time {
	if seen, ok := s.states[what]; ok && seen.state == state {
		return seen.since
	}
	s.states[what] = sighting{state, now}
	return now
}

func (s *sampler) totals(pipelines []pipelineStatus, interval time.Duration) totals {
	var (
		records   = Count{Name: "records"}
		forwarded = Count{Name: "forwarded"}
		lags      []*int64
	)
	for _, p := range pipelines {
		records.Total += p.Records.Total
		for _, o := range p.Outcomes {
			if o.Name == forwarded.Name {
				forwarded.Total += o.Total
			}
		}
		lags = append(lags, p.Lag.Records)
	}
	shown, _ := s.rates("", "totals", []Count{records, forwarded}, interval)
	return totals{Records: shown[0], Forwarded: shown[1], Lag: s.sumOfLags("", lags)}
}

func (s *sampler) store(
	now Store, checks []checkStatus, at time.Time, interval time.Duration,
) storeStatus {
	shown := storeStatus{Type: now.Type, State: "unknown",
		Blocked: append([]string{}, now.Blocked...), Facts: append([]Fact{}, now.Facts...)}
	shown.Results, shown.Claims = s.rates(ofStore, "claims", now.Claims, interval)
	shown.Batch = s.batch(now.Batches)
	for _, c := range checks {
		if c.Name != StoreCheck {
			continue
		}
		if shown.State = "up"; !c.OK {
			shown.State, shown.Error = "down", c.Error
		}
	}
	blocked := len(now.Blocked) > 0
	if since := s.since("blocked", fmt.Sprint(blocked), at); blocked {
		shown.BlockedSince = moment{since, at}
	}
	if blocked && shown.State != "down" {
		shown.State = "blocked"
	}
	shown.Since = moment{s.since("store", shown.State, at), at}
	return shown
}

// batch is about the last intervals.
func (s *sampler) batch(now Durations) latency {
	earlier := now
	if len(s.batches) > 0 {
		earlier = s.batches[0]
	}
	s.batches = append(s.batches, now)
	if len(s.batches) > averaged {
		s.batches = append(s.batches[:0], s.batches[1:]...)
	}
	return between(earlier, now)
}

func (s *sampler) events(events []Event, now time.Time) []eventStatus {
	shown := make([]eventStatus, len(events))
	for i, e := range events {
		shown[i] = eventStatus{
			Level: strings.ToLower(e.Level), Message: s.clean(e.Message), Error: s.clean(e.Error),
			Hint:  e.Hint,
			Topic: e.Topic, Lane: e.Lane, Details: s.clean(e.Details), Count: e.Count,
			First: moment{e.First, now}, Last: moment{e.Last, now},
		}
	}
	return shown
}

// forgetOthers drops the series of pipelines that are gone: one of the same name begins with empty
// charts.
func (s *sampler) forgetOthers(pipelines []Pipeline) {
	runs := func(name string) bool {
		return name == "" || name == ofStore ||
			slices.ContainsFunc(pipelines, func(p Pipeline) bool {
				return p.Input == name
			})
	}
	maps.DeleteFunc(s.counters, func(key string, _ *counter) bool {
		of, _, _ := strings.Cut(key, "\x00")
		return !runs(of)
	})
	maps.DeleteFunc(s.lags, func(of string, _ *history) bool { return !runs(of) })
}
