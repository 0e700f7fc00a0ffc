package telemetry

import (
	"encoding/hex"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Span names a span in a trace. The zero value names none.
type Span struct {
	TraceID [16]byte
	ID      [8]byte
}

// Labels are those of an exemplar, by the names that Grafana and the OpenTelemetry bridge look for.
func (s Span) Labels() prometheus.Labels {
	return prometheus.Labels{
		"trace_id": hex.EncodeToString(s.TraceID[:]), "span_id": hex.EncodeToString(s.ID[:]),
	}
}

// example is a value of a bucket, and the span that tells about it.
type example struct {
	value float64
	of    Span
}

// Exemplify makes a value that was observed the example of its bucket, in the place of an earlier
// one.
func (t *Tally) Exemplify(value float64, of Span) {
	if t.examples == nil {
		t.examples = make([]example, len(t.counts))
	}
	t.examples[t.bucket(value)] = example{value, of}
}

// exemplifyLocked puts the examples of a tally in the place of earlier ones.
func (h *Histogram) exemplifyLocked(examples []example) {
	now := time.Now()
	for i, e := range examples {
		if e.of == (Span{}) {
			continue
		}
		if h.exemplars == nil {
			h.exemplars = make([]prometheus.Exemplar, len(h.counts))
		}
		h.exemplars[i] = prometheus.Exemplar{Value: e.value, Labels: e.of.Labels(), Timestamp: now}
	}
}

func (h *Histogram) withExemplarsLocked(plain prometheus.Metric) prometheus.Metric {
	var present []prometheus.Exemplar
	for _, e := range h.exemplars {
		if e.Labels != nil {
			present = append(present, e)
		}
	}
	if len(present) == 0 {
		return plain // the client refuses an empty list
	}
	return prometheus.MustNewMetricWithExemplars(plain, present...)
}

// ObserveIn observes a value in a histogram, with the span as its exemplar if there is one.
func ObserveIn(histogram prometheus.Observer, value float64, of Span) {
	if with, can := histogram.(prometheus.ExemplarObserver); can && of != (Span{}) {
		with.ObserveWithExemplar(value, of.Labels())
		return
	}
	histogram.Observe(value)
}
