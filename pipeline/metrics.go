package pipeline

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// Collectors are the metric families that all lanes of a process share.
type Collectors struct {
	records, verdicts, batches, failures *prometheus.CounterVec
	nearTTL, late, undeliverable         *prometheus.CounterVec
	// by partition; nil if that is not wanted
	copies                        *prometheus.CounterVec
	forwardSeconds, commitSeconds *prometheus.HistogramVec
	ages, endToEnd                *telemetry.Histograms
	inFlight, lanes, ttl          *prometheus.GaugeVec
	waits                         *telemetry.Waits
	ready                         *readiness
}

// Buckets of the two histograms that get a value for each record.
var (
	ageBuckets = seconds(time.Second, 10*time.Second, time.Minute, 5*time.Minute, 15*time.Minute,
		time.Hour,
		4*time.Hour, 12*time.Hour, days(1), days(2), days(3), days(5), days(7), days(10), days(14),
		days(21), days(30))
	endToEndBuckets = seconds(5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond,
		50*time.Millisecond,
		100*time.Millisecond, 250*time.Millisecond, 500*time.Millisecond, time.Second,
		2500*time.Millisecond, 5*time.Second,
		10*time.Second, 30*time.Second, time.Minute, 5*time.Minute, 15*time.Minute, time.Hour,
		4*time.Hour, days(1))
)

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

func seconds(bounds ...time.Duration) (list []float64) {
	for _, b := range bounds {
		list = append(list, b.Seconds())
	}
	return list
}

// NewCollectors registers the families.
func NewCollectors(reg prometheus.Registerer) *Collectors {
	steps := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}, []string{"topic"})
	}
	perRecord := func(name, help string, buckets []float64,
		labels ...string) *telemetry.Histograms {
		return telemetry.NewHistograms(reg,
			prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels...)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			append([]string{"topic"}, labels...))
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help},
			append([]string{"topic"}, labels...))
	}
	c := &Collectors{
		records: counter("kdedup_records_total", "Records by what became of them, counted when "+
			"their batch is committed: the sum is what was consumed.", "outcome"),
		verdicts: counter("kdedup_verdicts_total",
			"Records by what their claim said, counted when their batch is committed.", "verdict"),
		batches: counter("kdedup_batches_total", "Batches by result: committed, aborted (given "+
			"back) or failed. With exactly_once a batch is a transaction.", "result"),
		failures: counter("kdedup_lane_failures_total",
			"Times that a lane closed its session after an error and joined again, by reason.",
			"reason"),
		nearTTL: counter("kdedup_duplicates_near_ttl_total", "Duplicates and conflicts that came "+
			"in the last fifth of the TTL of what they are copies of. With ttl_from: last it stays "+
			"0, because copies put the end off."),
		late: counter("kdedup_forwards_late_total",
			"Records forwarded by an own claim that was older than half the TTL: an earlier "+
				"attempt did not commit. The claim is not renewed."),
		undeliverable: counter("kdedup_undeliverable_total",
			"Records that the clean topic does not take, by why, counted when their batch is "+
				"committed. Their outcome is dead_lettered or dropped.", "reason"),
		forwardSeconds: steps("kdedup_forward_duration_seconds",
			"Time from the first record produced to the last acknowledgement of a batch."),
		commitSeconds: steps("kdedup_commit_duration_seconds",
			"Time to commit a batch: the end of the transaction, or the fences."),
		ages: perRecord("kdedup_duplicate_age_seconds",
			"Age of duplicates and conflicts: from the claim of the first copy to the moment "+
				"when this one was judged.", ageBuckets, "topic", "verdict"),
		endToEnd: perRecord("kdedup_end_to_end_seconds",
			"Time from the timestamp of a record to the commit of its forward, for records that "+
				"went to the clean topic.", endToEndBuckets, "topic"),
		inFlight: gauge("kdedup_records_in_flight", "Records of the batch that a lane works on.",
			"lane"),
		lanes: gauge("kdedup_lane_up",
			"1 while the lane has a session with the brokers, 0 between sessions.", "lane"),
		ttl:   gauge("kdedup_ttl_seconds", "The ttl of the configuration: how long a claim holds."),
		waits: telemetry.Blocked(reg),
		ready: newReadiness(),
	}
	reg.MustRegister(c.records, c.verdicts, c.batches, c.failures, c.nearTTL, c.late,
		c.undeliverable, c.forwardSeconds, c.commitSeconds,
		c.inFlight, c.lanes, c.ttl, c.ready)
	return c
}

// PerPartition adds the families that have a series for each input partition.
func (c *Collectors) PerPartition(reg prometheus.Registerer) *Collectors {
	c.copies = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kdedup_partition_duplicates_total",
		Help: "Duplicates and conflicts by the input partition on which they were read. Absent " +
			"with metrics.per_partition: false.",
	}, []string{"topic", "partition"})
	reg.MustRegister(c.copies)
	return c
}

// Metrics are the series of one lane. Every series exists from the start.
type Metrics struct {
	outcomes                      [len(outcomeNames)]prometheus.Counter
	verdicts                      []prometheus.Counter
	failures                      [len(reasonNames)]prometheus.Counter
	committed, aborted, failed    prometheus.Counter
	nearTTL, late                 prometheus.Counter
	undeliverable                 [len(refusalReasons)]prometheus.Counter
	copies                        *prometheus.CounterVec // by partition; nil if that is not wanted
	forwardSeconds, commitSeconds prometheus.Observer
	ages                          map[dedup.Verdict]*telemetry.Histogram
	endToEnd                      *telemetry.Histogram
	inFlight, up, ttlSeconds      prometheus.Gauge
	output, rejoin                *telemetry.Wait
	ready                         func(ready func() error)
	ttl                           time.Duration
	sliding                       bool
}

// For returns the metrics of one lane; topic is the input topic.
func (c *Collectors) For(topic string, lane int) *Metrics {
	number := strconv.Itoa(lane)
	m := &Metrics{
		committed:      c.batches.WithLabelValues(topic, resultCommitted),
		aborted:        c.batches.WithLabelValues(topic, resultAborted),
		failed:         c.batches.WithLabelValues(topic, resultFailed),
		nearTTL:        c.nearTTL.WithLabelValues(topic),
		late:           c.late.WithLabelValues(topic),
		forwardSeconds: c.forwardSeconds.WithLabelValues(topic),
		commitSeconds:  c.commitSeconds.WithLabelValues(topic),
		ages:           make(map[dedup.Verdict]*telemetry.Histogram),
		endToEnd:       c.endToEnd.With(topic),
		inFlight:       c.inFlight.WithLabelValues(topic, number),
		up:             c.lanes.WithLabelValues(topic, number),
		ttlSeconds:     c.ttl.WithLabelValues(topic),
		output:         c.waits.With(time.Second, topic, telemetry.BlockedByOutput),
		rejoin:         c.waits.With(0, topic, telemetry.BlockedByRejoin),
		ready:          func(ready func() error) { c.ready.set(topic, number, ready) },
	}
	if c.copies != nil {
		m.copies = c.copies.MustCurryWith(prometheus.Labels{"topic": topic})
	}
	for o := range m.outcomes {
		m.outcomes[o] = c.records.WithLabelValues(topic, Outcome(o).String())
	}
	for i, reason := range refusalReasons {
		m.undeliverable[i] = c.undeliverable.WithLabelValues(topic, reason)
	}
	for r := range m.failures {
		m.failures[r] = c.failures.WithLabelValues(topic, reasonNames[r])
	}
	for _, v := range dedup.Verdicts() {
		m.verdicts = append(m.verdicts, c.verdicts.WithLabelValues(topic, v.String()))
	}
	for _, v := range []dedup.Verdict{dedup.VerdictDuplicate, dedup.VerdictConflict} {
		m.ages[v] = c.ages.With(topic, v.String())
	}
	return m
}

// Retire takes away the series of a topic's lanes, which have ended. What they counted stays.
func (c *Collectors) Retire(topic string) {
	lanes := prometheus.Labels{"topic": topic}
	c.inFlight.DeletePartialMatch(lanes)
	c.lanes.DeletePartialMatch(lanes)
	c.ready.forget(topic)
	c.waits.Retire(topic)
}

// Forget takes away every series of a topic whose lanes have ended.
func (c *Collectors) Forget(topic string) {
	c.Retire(topic)
	all := []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{c.records, c.verdicts, c.batches, c.failures, c.nearTTL, c.late, c.undeliverable,
		c.forwardSeconds, c.commitSeconds, c.ttl}
	if c.copies != nil {
		all = append(all, c.copies)
	}
	for _, family := range all {
		family.DeletePartialMatch(prometheus.Labels{"topic": topic})
	}
	c.ages.Forget(topic)
	c.endToEnd.Forget(topic)
	c.waits.Forget(topic)
}

// within tells how long a claim holds, and whether that counts from the last copy.
func (m *Metrics) within(ttl time.Duration, sliding bool) *Metrics {
	m.ttl, m.sliding = ttl, sliding
	m.ttlSeconds.Set(ttl.Seconds())
	return m
}

// joined is called when the lane has a session.
func (m *Metrics) joined() {
	m.up.Set(1)
	m.rejoin.End()
}

// laneFailed is called when a session has failed, or could not be had.
func (m *Metrics) laneFailed(err error) {
	m.failures[reasonOf(err)].Inc()
	m.rejoin.Begin()
}

// How the work on a batch ends.
const (
	resultCommitted = "committed"
	resultAborted   = "aborted" // given back
	resultFailed    = "failed"
)

// batchEnded counts a batch that was not committed.
func (m *Metrics) batchEnded(e Ending) {
	m.inFlight.Set(0)
	switch e.Result {
	case resultAborted:
		m.aborted.Inc()
	case resultFailed:
		m.failed.Inc()
	}
}

// readiness is the family kdedup_lane_ready: what /readyz says, asked at each scrape.
type readiness struct {
	desc *prometheus.Desc
	mu   sync.Mutex
	asks map[[2]string]func() error // by topic and lane
}

func newReadiness() *readiness {
	return &readiness{
		desc: prometheus.NewDesc("kdedup_lane_ready",
			"1 if the lane is a member of its group and does not fail again and again, as in "+
				"/readyz.", []string{"topic", "lane"}, nil),
		asks: make(map[[2]string]func() error),
	}
}

func (r *readiness) set(topic, lane string, ready func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks[[2]string{topic, lane}] = ready
}

func (r *readiness) forget(topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.asks, func(labels [2]string, _ func() error) bool {
		return labels[0] == topic
	})
}

// Describe implements prometheus.Collector.
func (r *readiness) Describe(to chan<- *prometheus.Desc) { to <- r.desc }

// Collect implements prometheus.Collector.
func (r *readiness) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for labels, ready := range r.asks {
		value := 0.0
		if ready() == nil {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, value, labels[:]...)
	}
}
