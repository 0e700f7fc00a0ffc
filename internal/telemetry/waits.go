package telemetry

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons for which a lane stands still.
const (
	BlockedByStore    = "store"    // claims stay undecided
	BlockedByRegistry = "registry" // it is not known whether records have IDs
	BlockedByOutput   = "output"   // forwards or a commit stay unanswered
	BlockedByRejoin   = "rejoin"   // a session failed, and the lane has not joined again
)

// Waits is a family of counters of seconds. A wait that is not over yet is counted up to now: a
// counter that rises only at the end of a wait shows nothing while somebody should know.
type Waits struct {
	desc *prometheus.Desc

	mu     sync.Mutex
	series []*Wait
}

// Blocked is the family of the time that lanes stand still. The packages that know the reasons
// share it: the first caller registers it.
func Blocked(reg prometheus.Registerer) *Waits {
	f := &Waits{desc: prometheus.NewDesc("kdedup_blocked_seconds_total",
		"Seconds that lanes stood still, by reason: store (claims undecided), registry "+
			"(message IDs unknown without a schema), output (forwards or a commit unanswered "+
			"for more than a second), "+
			"rejoin (between a failure and the next session). Lanes are added up; a wait that "+
			"lasts is counted up to now.",
		[]string{"topic", "reason"}, nil)}
	if taken := (prometheus.AlreadyRegisteredError{}); errors.As(reg.Register(f), &taken) {
		return taken.ExistingCollector.(*Waits)
	}
	return f
}

// Wait is the clock of one lane for one reason. Begin and End are called by one goroutine.
type Wait struct {
	grace  time.Duration // of each wait, not counted
	values []string

	mu    sync.Mutex
	since time.Time // zero while nobody waits
	total time.Duration
}

// Runs reports whether the lane waits now.
func (w *Wait) Runs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.since.IsZero()
}

// With returns a new clock. Clocks with equal label values make up one series. The first seconds of
// each wait, grace, are what the work takes anyhow.
func (f *Waits) With(grace time.Duration, values ...string) *Wait {
	w := &Wait{grace: grace, values: values}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series = append(f.series, w)
	return w
}

// Begin starts the clock, unless it runs.
func (w *Wait) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		w.since = time.Now()
	}
}

// End stops the clock, if it runs.
func (w *Wait) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total, w.since = w.untilLocked(time.Now()), time.Time{}
}

// Retire ends the clocks of a topic whose lanes are gone. What they counted stays.
func (f *Waits) Retire(topic string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var kept []*Wait
	for i, w := range f.series {
		switch {
		case w.values[0] != topic:
			kept = append(kept, w)
		case !slices.ContainsFunc(kept, func(k *Wait) bool {
			return slices.Equal(k.values, w.values)
		}):
			kept = append(kept, &Wait{values: w.values, total: f.sumLocked(i, time.Now())})
		}
	}
	f.series = kept
}

// Forget takes the series of a topic away.
func (f *Waits) Forget(topic string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series = slices.DeleteFunc(f.series, func(w *Wait) bool { return w.values[0] == topic })
}

func (w *Wait) until(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.untilLocked(now)
}

func (w *Wait) untilLocked(now time.Time) time.Duration {
	if w.since.IsZero() {
		return w.total
	}
	return w.total + max(0, now.Sub(w.since)-w.grace)
}

// Describe implements prometheus.Collector.
func (f *Waits) Describe(to chan<- *prometheus.Desc) { to <- f.desc }

// Collect implements prometheus.Collector.
func (f *Waits) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var done [][]string
	for i, w := range f.series {
		if slices.ContainsFunc(done, func(values []string) bool {
			return slices.Equal(values, w.values)
		}) {
			continue
		}
		done = append(done, w.values)
		to <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue,
			f.sumLocked(i, now).Seconds(), w.values...)
	}
}

// sumLocked adds up the clocks that share the series of the i-th, which is the first of them.
func (f *Waits) sumLocked(i int, now time.Time) (sum time.Duration) {
	for _, w := range f.series[i:] {
		if slices.Equal(w.values, f.series[i].values) {
			sum += w.until(now)
		}
	}
	return sum
}
