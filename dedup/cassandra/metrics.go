package cassandra

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

type metrics struct {
	requests  prometheus.Counter
	overloads prometheus.Counter
	seconds   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, l *limiter) *metrics {
	m := &metrics{
		requests: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kdedup_cassandra_requests_total",
			Help: "Statements sent to claim IDs: conditional batches and reads.",
		}),
		overloads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kdedup_cassandra_overloads_total",
			Help: "Statements that timed out or that Cassandra refused to take; each batch of " +
				"them halves the requests in flight.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kdedup_cassandra_request_duration_seconds",
			Help:    "Time of one statement.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
	}
	limit := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kdedup_cassandra_requests_limit",
		Help: "Statements that may be in flight at present.",
	}, func() float64 { limit, _ := l.current(); return limit })
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kdedup_cassandra_requests_in_flight",
		Help: "Statements in flight.",
	}, func() float64 { _, inUse := l.current(); return float64(inUse) })
	reg.MustRegister(m.requests, m.overloads, m.seconds, limit, inFlight)
	return m
}

// RegisterMetrics registers the families of a store without opening one, for the document that
// lists them.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg, newLimiter(1)) }

// Facts are for the status page.
func (s *Store) Facts() []dedup.Fact {
	limit, inUse := s.limiter.current()
	return []dedup.Fact{
		{Name: "requests_in_flight", Value: float64(inUse), Unit: "count"},
		{Name: "requests_in_flight_at_most", Value: limit, Unit: "count"},
		{Name: "requests_overloaded", Value: telemetry.Total(s.metrics.overloads), Unit: "count"},
	}
}
