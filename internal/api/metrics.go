package api

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
)

// metrics counts what callers ask and hear.
type metrics struct {
	seconds  *prometheus.HistogramVec
	verdicts *prometheus.CounterVec
	underWay prometheus.Gauge
}

// RegisterMetrics registers what a server counts, for documents.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kdedup_api_request_duration_seconds",
			Help:    "Time of requests to the API, by method and by code of the answer.",
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
	}
	reg.MustRegister(m.seconds, m.verdicts, m.underWay)
	return m
}

func (m *metrics) observed() connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			begin, code := time.Now(), "ok"
			m.underWay.Inc()
			defer m.underWay.Dec()
			response, err := next(ctx, r)
			if err != nil {
				code = connect.CodeOf(err).String()
			}
			method := r.Spec().Procedure
			method = method[strings.LastIndexByte(method, '/')+1:]
			m.seconds.WithLabelValues(method, code).Observe(time.Since(begin).Seconds())
			return response, err
		}
	}
}

func (m *metrics) judged(scope string, judgements []dedup.Judgement) {
	var by [dedup.VerdictCount]int
	for i := range judgements {
		by[judgements[i].Verdict]++
	}
	for verdict, n := range by {
		if n > 0 {
			m.verdicts.WithLabelValues(scope, dedup.Verdict(verdict).String()).Add(float64(n))
		}
	}
}
