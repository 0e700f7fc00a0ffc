package telemetry

import (
	"slices"
	"sort"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Histograms is a family of histograms for values that come by the thousand, one for each record. A
// batch counts into a Tally of its own, and the histogram's lock is taken once for all of it.
type Histograms struct {
	desc   *prometheus.Desc
	bounds []float64 // upper bounds of the buckets, ascending

	mu     sync.Mutex
	series []*Histogram
}

// NewHistograms registers a family. The options' name, help and buckets are used.
func NewHistograms(
	reg prometheus.Registerer, o prometheus.HistogramOpts, labels ...string,
) *Histograms {
	f := &Histograms{desc: prometheus.NewDesc(o.Name, o.Help, labels, nil), bounds: o.Buckets}
	reg.MustRegister(f)
	return f
}

// Histogram is one series.
type Histogram struct {
	bounds []float64
	values []string // of the labels

	mu        sync.Mutex
	counts    []uint64 // by bucket, not cumulative; the last one is for what is above all bounds
	sum       float64
	exemplars []prometheus.Exemplar // the latest of each bucket that has one; nil before the first
}

// With returns the series of the label values, and makes it when it is asked for first.
func (f *Histograms) With(values ...string) *Histogram {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.series {
		if slices.Equal(h.values, values) {
			return h
		}
	}
	h := &Histogram{bounds: f.bounds, values: values, counts: make([]uint64, len(f.bounds)+1)}
	f.series = append(f.series, h)
	return h
}

// Forget takes away the series whose first label has the value.
func (f *Histograms) Forget(value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series = slices.DeleteFunc(f.series, func(h *Histogram) bool { return h.values[0] == value })
}

// Add takes what a tally has counted, and empties it.
func (h *Histogram) Add(t *Tally) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, n := range t.counts {
		h.counts[i] += n
	}
	h.sum += t.sum
	h.exemplifyLocked(t.examples)
	clear(t.counts)
	t.sum, t.examples = 0, nil
}

// Describe implements prometheus.Collector.
func (f *Histograms) Describe(to chan<- *prometheus.Desc) { to <- f.desc }

// Collect implements prometheus.Collector.
func (f *Histograms) Collect(to chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.series {
		to <- h.snapshot(f.desc)
	}
}

func (h *Histogram) snapshot(desc *prometheus.Desc) prometheus.Metric {
	h.mu.Lock()
	defer h.mu.Unlock()
	cumulative := make(map[float64]uint64, len(h.bounds))
	total := uint64(0)
	for i, bound := range h.bounds {
		total += h.counts[i]
		cumulative[bound] = total
	}
	total += h.counts[len(h.bounds)]
	plain := prometheus.MustNewConstHistogram(desc, total, h.sum, cumulative, h.values...)
	return h.withExemplarsLocked(plain)
}

// Tally counts the values of one batch. It is used by one goroutine.
type Tally struct {
	bounds   []float64
	counts   []uint64
	sum      float64
	last     int       // the bucket of the last value: neighbours are often alike
	examples []example // by bucket; nil before the first
}

// Tally returns an empty one for this histogram.
func (h *Histogram) Tally() *Tally {
	return &Tally{bounds: h.bounds, counts: make([]uint64, len(h.counts))}
}

// Observe counts a value n times.
func (t *Tally) Observe(value float64, n int) {
	t.counts[t.bucket(value)] += uint64(n)
	t.sum += value * float64(n)
}

func (t *Tally) bucket(value float64) int {
	at := t.last
	if at < len(t.bounds) && value > t.bounds[at] || at > 0 && value <= t.bounds[at-1] {
		at = sort.SearchFloat64s(t.bounds, value)
		t.last = at
	}
	return at
}
