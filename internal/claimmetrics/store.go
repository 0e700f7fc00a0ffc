package claimmetrics

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
)

// storeMetrics are the series of the one store of a process, whichever it is.
type storeMetrics struct {
	up       prometheus.Gauge
	inFlight prometheus.Gauge
	seconds  *prometheus.HistogramVec
	errors   *prometheus.CounterVec
}

func newStoreMetrics(reg prometheus.Registerer) *storeMetrics {
	m := &storeMetrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_store_up",
			Help: "1 if the store answered the last call, 0 if not; /readyz asks it too.",
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_store_claims_in_flight",
			Help: "Claims that the store was asked for and has not answered yet.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kdedup_store_call_duration_seconds",
			Help:    "Time of one call of the store: the claims of a batch, or one lookup.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}, []string{"call"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_store_errors_total",
			Help: "Calls of the store that left something undecided.",
		}, []string{"call"}),
	}
	reg.MustRegister(m.up, m.inFlight, m.seconds, m.errors)
	return m
}

// Observed returns the store with its calls in the metrics. The store is open and has answered.
func (c *Collectors) Observed(s dedup.Store) dedup.Store {
	c.store.up.Set(1)
	return &observed{
		Store: s, up: c.store.up, inFlight: c.store.inFlight,
		claim: c.store.call("claim"), lookup: c.store.call("lookup"),
	}
}

type call struct {
	seconds prometheus.Observer
	errors  prometheus.Counter
}

func (m *storeMetrics) call(name string) call {
	return call{m.seconds.WithLabelValues(name), m.errors.WithLabelValues(name)}
}

// observed is a store that is watched. What is not asked in the course of work is passed through.
type observed struct {
	dedup.Store
	up, inFlight  prometheus.Gauge
	claim, lookup call
}

// Unwrap is for dedup.Unwrapped.
func (o *observed) Unwrap() dedup.Store { return o.Store }

// Claim implements dedup.Store.
func (o *observed) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	o.inFlight.Add(float64(len(claims)))
	defer o.inFlight.Sub(float64(len(claims)))
	start := time.Now()
	answers, err := o.Store.Claim(ctx, scope, claims)
	decided := slices.ContainsFunc(answers, func(a dedup.Answer) bool {
		return a.Outcome != dedup.Undecided
	})
	o.note(ctx, o.claim, start, decided, err)
	return answers, err
}

// Lookup implements dedup.Store.
func (o *observed) Lookup(
	ctx context.Context, scope dedup.Scope, id dedup.ID,
) (dedup.Answer, error) {
	start := time.Now()
	answer, err := o.Store.Lookup(ctx, scope, id)
	o.note(ctx, o.lookup, start, false, err)
	return answer, err
}

// note takes a store for up that has decided at least something. A call that its caller gave up
// says nothing about the store, unless it ran into its caller's deadline.
func (o *observed) note(ctx context.Context, c call, start time.Time, decided bool, err error) {
	c.seconds.Observe(time.Since(start).Seconds())
	switch {
	case err == nil:
		o.up.Set(1)
		return
	case ctx.Err() == context.Canceled:
		return
	case decided:
		o.up.Set(1)
	default:
		o.up.Set(0)
	}
	c.errors.Inc()
}
