package api

import (
	"github.com/prometheus/client_golang/prometheus"
	"sync"

	"github.com/kdedup/kdedup/dedup"
)

// Metrics count what callers ask and hear. They outlive a server, which may begin again.
type Metrics struct {
	up       prometheus.Gauge
	seconds  *prometheus.HistogramVec
	verdicts *prometheus.CounterVec
	underWay prometheus.Gauge
	begins   *prometheus.CounterVec
	refused  *prometheus.CounterVec
	callers  sync.Map // by name: *atomic.Int64, the requests
	inHand   keysInHand
}

// NewMetrics registers what servers count. Only one of them runs at a time.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_api_up",
			Help: "1 while the API answers, 0 while it waits for the store, its address or its " +
				"keys.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kdedup_api_request_duration_seconds",
			Help: "Time of requests to the API, by method and by code of the answer, which is " +
				"unread for those that are malformed or too large.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}, []string{"method", "code"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_api_verdicts_total",
			Help: "Messages that the API judged, by scope and verdict.",
		}, []string{"scope", "verdict"}),
		underWay: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_api_requests",
			Help: "Requests to the API that are under way.",
		}),
		begins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_api_begins_total",
			Help: "Answers to Begin, by scope and outcome: acquired, in_progress, completed, " +
				"failed, conflict.",
		}, []string{"scope", "outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_api_refused_total",
			Help: "Requests to the API that were refused before their method saw them, by " +
				"reason: stranger, busy.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{refusedStranger, refusedBusy} {
		m.refused.WithLabelValues(reason)
	}
	reg.MustRegister(m.up, m.seconds, m.verdicts, m.underWay, m.begins, m.refused)
	return m
}

// Why requests are refused before their method sees them.
const (
	refusedStranger = "stranger"
	refusedBusy     = "busy"
)

// Answers tells whether a server runs.
func (m *Metrics) Answers(does bool) {
	m.up.Set(0)
	if does {
		m.up.Set(1)
	}
}

func (m *Metrics) judged(scope string, by *[dedup.VerdictCount]int) {
	for verdict, n := range by {
		if n > 0 {
			m.verdicts.WithLabelValues(scope, dedup.Verdict(verdict).String()).Add(float64(n))
		}
	}
}
