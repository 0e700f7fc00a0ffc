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
	lookup bool // IDs may be shown
	latest atomic.Pointer[status]

	// Owned by the goroutine that calls sample.
	last     time.Time
	counters map[string]*counter
	lags     map[string]*history
	gone     map[string]int // samples without a pipeline that has counters
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
		source: o.Source, about: o.About, probes: probes, clean: clean, lookup: o.Lookup,
		counters: make(map[string]*counter), lags: make(map[string]*history),
		gone: make(map[string]int), states: make(map[string]sighting),
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
	made.Held, made.Dropped = held(snap.Pipelines), s.dropped(snap.Pipelines, now)
	made.Store = s.store(snap.Store, made.Checks, now, interval)
	made.Store.Forecast = s.forecast(snap.Pipelines, snap.Store.Facts)
	made.Clusters = s.clusters(snap.Clusters, made.Checks, now)
	made.API = s.api(snap.API, now, interval)
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
		doubled   = Count{Name: "duplicates"}
		lags      []*int64
		hidden    int64
		made      totals
	)
	for _, p := range pipelines {
		records.Total += p.Records.Total
		for _, o := range p.Outcomes {
			if o.Name == forwarded.Name {
				forwarded.Total += o.Total
			}
		}
		doubled.Total += p.Duplicates.Total
		made.Problems = made.Problems.and(p.Problems)
		lags = append(lags, p.Lag.Records)
		hidden += p.Lag.Hidden
	}
	_, made.Records = s.rates("", "records", []Count{records}, interval)
	_, made.Forwarded = s.rates("", "forwarded", []Count{forwarded}, interval)
	made.Duplicates = s.duplicates("", doubled, interval)
	made.Lag = s.sumOfLags("", lags, hidden)
	return made
}

func (s *sampler) clusters(
	now []Cluster, checks []checkStatus, at time.Time,
) (shown []clusterStatus) {
	shown = []clusterStatus{}
	for _, c := range now {
		its := clusterStatus{Cluster: c}
		its.State, its.Error = health(checks, ClusterCheck(c.Name))
		its.Since = moment{s.since(ClusterCheck(c.Name), its.State, at), at}
		shown = append(shown, its)
	}
	return shown
}

// health is what the check of this name found.
func health(checks []checkStatus, name string) (state, reason string) {
	for _, c := range checks {
		switch {
		case c.Name != name:
		case c.OK:
			return "up", ""
		default:
			return "down", c.Error
		}
	}
	return "unknown", ""
}

func (s *sampler) store(
	now Store, checks []checkStatus, at time.Time, interval time.Duration,
) storeStatus {
	shown := storeStatus{Type: now.Type,
		Blocked: append([]string{}, now.Blocked...), Facts: append([]Fact{}, now.Facts...),
		Keepers: append([]Keeper{}, now.Keepers...)}
	shown.Results, shown.Claims = s.rates(ofStore, "claims", now.Claims, interval)
	shown.Batch = s.batch(now.Batches)
	shown.State, shown.Error = health(checks, StoreCheck)
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

// forgetOthers drops the series of pipelines that have been gone for as long as the charts show.
// One that a reload changes is away for a moment, and what it counted before is shown all the same.
func (s *sampler) forgetOthers(pipelines []Pipeline) {
	for of := range s.lags {
		if of == "" || slices.ContainsFunc(pipelines, func(p Pipeline) bool {
			return p.Input == of
		}) {
			delete(s.gone, of)
		} else {
			s.gone[of]++
		}
	}
	forgotten := func(of string) bool { return s.gone[of] > historyLength }
	maps.DeleteFunc(s.counters, func(key string, _ *counter) bool {
		of, _, _ := strings.Cut(key, "\x00")
		return forgotten(of)
	})
	maps.DeleteFunc(s.lags, func(of string, _ *history) bool { return forgotten(of) })
	maps.DeleteFunc(s.gone, func(of string, _ int) bool { return forgotten(of) })
}
