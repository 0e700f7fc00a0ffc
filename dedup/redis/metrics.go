package redis

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

type metrics struct {
	seconds  prometheus.Histogram
	failures *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kdedup_redis_pipeline_duration_seconds",
			Help:    "Time of one pipeline of claims.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_redis_failures_total",
			Help: "Pipelines and other calls that left something open: full (out of memory), " +
				"replicas (too few had the claims), " +
				"refused (any other error of the server), no_answer (timeouts and broken " +
				"connections).",
		}, []string{"reason"}),
	}
	for _, reason := range []string{reasonFull, reasonReplicas, reasonRefused, reasonNoAnswer} {
		m.failures.WithLabelValues(reason)
	}
	reg.MustRegister(m.seconds, m.failures)
	return m
}

// RegisterMetrics registers the families of a store without opening one, for the document that
// lists them.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

// Facts are for the status page.
func (s *Store) Facts() []dedup.Fact {
	return []dedup.Fact{{Name: "requests_failed", Value: telemetry.Total(s.metrics.failures),
		Unit: "count"}}
}
