package claimmetrics

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
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
	refusal  refusal
}

// refusal is why the store decides no claims, while lanes wait for that. A store that answers
// look-ups may take no claims: it is full, or may only be read.
type refusal struct {
	waiting atomic.Int64 // lanes

	mu    sync.Mutex
	err   error // of the last call, if that decided nothing
	since time.Time
}

// settled is how long a refusal must have lasted: one timeout of a busy store is none.
const settled = 2 * time.Second

func (r *refusal) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || err == nil {
		r.since = time.Now()
	}
	r.err = err
}

// now is nil while claims are decided, or nobody asks.
func (r *refusal) now() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting.Load() == 0 || time.Since(r.since) < settled {
		return nil
	}
	return r.err
}

// Refusal is why lanes wait for the store, nil if none does: what a look-up does not show.
func (c *Collectors) Refusal() error { return c.store.refusal.now() }

func newStoreMetrics(reg prometheus.Registerer) *storeMetrics {
	m := &storeMetrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_store_up",
			Help: "1 if the store answered the last call, 0 if not, or if it answers look-ups and " +
				"decides no claims; /readyz asks it too.",
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
		claim: c.store.call("claim"), lookup: c.store.call("lookup"), refusal: &c.store.refusal,
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
	refusal       *refusal
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
	if err == nil || decided {
		o.refusal.note(nil)
	} else if ctx.Err() != context.Canceled {
		o.refusal.note(err)
	}
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
		up := 1.0
		if o.refusal.now() != nil {
			up = 0
		}
		o.up.Set(up)
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
