package postgres

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

type metrics struct {
	seconds     prometheus.Histogram
	retries     prometheus.Counter
	swept       prometheus.Counter
	sweepErrors prometheus.Counter
	sweepLag    prometheus.Gauge
}

// newMetrics gets a function that tells how many connections are in use, and how many may be.
func newMetrics(reg prometheus.Registerer, connections func() (inUse, limit int32)) *metrics {
	m := &metrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kdedup_postgres_statement_duration_seconds",
			Help: "Time of one statement that claims IDs or reads their owners, with the wait " +
				"for a connection.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kdedup_postgres_retries_total",
			Help: "Statements that PostgreSQL undid because of a deadlock or a serialization " +
				"failure, and that were sent again.",
		}),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kdedup_postgres_expired_deleted_total",
			Help: "Expired claims that this process deleted; of all processes one at a time does " +
				"it.",
		}),
		sweepErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kdedup_postgres_sweep_errors_total",
			Help: "Sweeps for expired claims that failed; the next one comes at its time.",
		}),
		sweepLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_postgres_sweep_lag_seconds",
			Help: "How long the claims that this process deleted last had been expired, at most; " +
				"0 when it found none. While it can delete none, how long the oldest one has been.",
		}),
	}
	inUse := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kdedup_postgres_connections_in_use",
		Help: "Connections on which a statement runs.",
	}, func() float64 { inUse, _ := connections(); return float64(inUse) })
	limit := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kdedup_postgres_connections_limit",
		Help: "Connections that there may be; further statements wait.",
	}, func() float64 { _, limit := connections(); return float64(limit) })
	reg.MustRegister(m.seconds, m.retries, m.swept, m.sweepErrors, m.sweepLag, inUse, limit)
	return m
}

// RegisterMetrics registers the families of a store without opening one, for the document that
// lists them.
func RegisterMetrics(reg prometheus.Registerer) {
	newMetrics(reg, func() (inUse, limit int32) { return 0, 0 })
}

// Facts are for the status page.
func (s *Store) Facts() []dedup.Fact {
	stat := s.pool.Stat()
	return []dedup.Fact{
		{Name: "connections_in_use", Value: float64(stat.AcquiredConns()), Unit: "count"},
		{Name: "connections_at_most", Value: float64(stat.MaxConns()), Unit: "count"},
		{Name: "statements_sent_again", Value: telemetry.Total(s.metrics.retries), Unit: "count"},
	}
}
