// Package claimmetrics has the metrics of claims: what dedupers go through, and how the store
// answers.
package claimmetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// Metrics counts what the deduper of one lane asks and hears. Every series exists from the start.
type Metrics struct {
	claimSeconds prometheus.Observer
	applied      prometheus.Counter
	exists       prometheus.Counter
	unclaimed    prometheus.Counter
	ambiguous    prometheus.Counter
	retries      prometheus.Counter
	blocked      prometheus.Gauge
	wait         *telemetry.Wait // for the store
	registry     *telemetry.Wait
	refusal      *refusal
	waits        bool // for the store
}

// Collectors are the metric families that all dedupers of a process share.
type Collectors struct {
	seconds   *prometheus.HistogramVec
	claims    *prometheus.CounterVec
	ambiguous *prometheus.CounterVec
	retries   *prometheus.CounterVec
	blocked   *prometheus.GaugeVec
	waits     *telemetry.Waits
	store     *storeMetrics

	mu       sync.Mutex
	registry map[string]map[string]*telemetry.Wait // of each topic by lane
}

// NewCollectors registers the families.
func NewCollectors(reg prometheus.Registerer) *Collectors {
	c := &Collectors{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kdedup_claim_duration_seconds",
			Help:    "Time to have every claim of a batch decided, with repeats.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}, []string{"topic"}),
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_claims_total",
			Help: "Claims by result: applied, exists, or unclaimed when an outage outlasted " +
				"outage_grace.",
		}, []string{"topic", "result"}),
		ambiguous: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_claims_ambiguous_total",
			Help: "Claims whose outcome stayed unknown and that were claimed again.",
		}, []string{"topic"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_claim_retries_total",
			Help: "Times that the undecided claims of a batch were claimed again.",
		}, []string{"topic"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_store_blocked",
			Help: "1 while a lane waits for the store to decide claims.",
		}, []string{"topic", "lane"}),
		waits: telemetry.Blocked(reg),
		store: newStoreMetrics(reg), registry: make(map[string]map[string]*telemetry.Wait),
	}
	reg.MustRegister(c.seconds, c.claims, c.ambiguous, c.retries, c.blocked)
	return c
}

// What became of a claim.
const (
	resultApplied   = "applied"
	resultExists    = "exists"
	resultUnclaimed = "unclaimed"
)

// For returns the metrics of one lane; topic is the input topic.
func (c *Collectors) For(topic, lane string) *Metrics {
	m := &Metrics{
		claimSeconds: c.seconds.WithLabelValues(topic),
		applied:      c.claims.WithLabelValues(topic, resultApplied),
		exists:       c.claims.WithLabelValues(topic, resultExists),
		unclaimed:    c.claims.WithLabelValues(topic, resultUnclaimed),
		ambiguous:    c.ambiguous.WithLabelValues(topic),
		retries:      c.retries.WithLabelValues(topic),
		blocked:      c.blocked.WithLabelValues(topic, lane),
		wait:         c.waits.With(0, topic, telemetry.BlockedByStore),
		registry:     c.waits.With(0, topic, telemetry.BlockedByRegistry),
		refusal:      &c.store.refusal,
	}
	m.blocked.Set(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.registry[topic] == nil {
		c.registry[topic] = make(map[string]*telemetry.Wait)
	}
	c.registry[topic][lane] = m.registry
	return m
}

// Retire takes away the series of a topic's lanes, which have ended. What they counted stays.
func (c *Collectors) Retire(topic string) {
	c.blocked.DeletePartialMatch(prometheus.Labels{"topic": topic})
	c.waits.Retire(topic)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.registry, topic)
}

// Forget takes away every series of a topic whose lanes have ended.
func (c *Collectors) Forget(topic string) {
	c.Retire(topic)
	c.seconds.DeletePartialMatch(prometheus.Labels{"topic": topic})
	for _, family := range []*prometheus.CounterVec{c.claims, c.ambiguous, c.retries} {
		family.DeletePartialMatch(prometheus.Labels{"topic": topic})
	}
	c.waits.Forget(topic)
}

var _ dedup.Observer = (*Metrics)(nil)

// Undecided implements dedup.Observer. It begins a wait for the store, unless the lane waits
// already.
func (m *Metrics) Undecided(claims int) {
	m.ambiguous.Add(float64(claims))
	m.blocked.Set(1)
	m.wait.Begin()
	if !m.waits {
		m.waits = true
		m.refusal.waiting.Add(1)
	}
}

// Unresolved implements dedup.Observer. It begins a wait for the schema registry, unless the lane
// waits already.
func (m *Metrics) Unresolved(int) { m.registry.Begin() }

// Again implements dedup.Observer.
func (m *Metrics) Again() { m.retries.Inc() }

// Ended implements dedup.Observer.
func (m *Metrics) Ended() {
	m.blocked.Set(0)
	m.wait.End()
	m.registry.End()
	if m.waits {
		m.waits = false
		m.refusal.waiting.Add(-1)
	}
}

// Judged implements dedup.Observer.
func (m *Metrics) Judged(answers []dedup.Answer, took time.Duration) {
	m.claimSeconds.Observe(took.Seconds())
	var by [3]int
	for i := range answers {
		by[answers[i].Outcome]++
	}
	m.applied.Add(float64(by[dedup.Applied]))
	m.exists.Add(float64(by[dedup.Exists]))
	m.unclaimed.Add(float64(by[dedup.Undecided]))
}
