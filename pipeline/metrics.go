package pipeline

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
)

// Collectors are the metric families that all lanes of a process share.
type Collectors struct {
	records, verdicts, batches, failures *prometheus.CounterVec
	forwardSeconds, commitSeconds        *prometheus.HistogramVec
	inFlight, lanes                      *prometheus.GaugeVec
}

// NewCollectors registers the families.
func NewCollectors(reg prometheus.Registerer) *Collectors {
	seconds := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}, []string{"topic"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"topic"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"topic", "lane"})
	}
	c := &Collectors{
		records:        counter("kdedup_records_total", "Records by what became of them, counted when their offsets are committed: the sum is what was consumed.", "outcome"),
		verdicts:       counter("kdedup_verdicts_total", "Records by what their claim said, counted when their offsets are committed.", "verdict"),
		batches:        counter("kdedup_batches_total", "Batches by result: committed, aborted (given back because of a rebalance) or failed.", "result"),
		failures:       counter("kdedup_lane_failures_total", "Times that a lane closed its session after an error and joined again."),
		forwardSeconds: seconds("kdedup_forward_duration_seconds", "Time from the first record produced to the last acknowledgement of a batch."),
		commitSeconds:  seconds("kdedup_commit_duration_seconds", "Time to commit a batch: the end of the transaction, or fence and offsets."),
		inFlight:       gauge("kdedup_records_in_flight", "Records of the batch that a lane works on."),
		lanes:          gauge("kdedup_lane_up", "1 while the lane is a member of the consumer group."),
	}
	reg.MustRegister(c.records, c.verdicts, c.batches, c.failures, c.forwardSeconds, c.commitSeconds, c.inFlight, c.lanes)
	return c
}

// Metrics are the series of one lane. Every series exists from the start.
type Metrics struct {
	outcomes                             [len(outcomeNames)]prometheus.Counter
	verdicts                             []prometheus.Counter
	committed, aborted, failed, failures prometheus.Counter
	forwardSeconds, commitSeconds        prometheus.Observer
	inFlight, up                         prometheus.Gauge
}

// For returns the metrics of one lane; topic is the input topic.
func (c *Collectors) For(topic string, lane int) *Metrics {
	number := strconv.Itoa(lane)
	m := &Metrics{
		committed:      c.batches.WithLabelValues(topic, "committed"),
		aborted:        c.batches.WithLabelValues(topic, "aborted"),
		failed:         c.batches.WithLabelValues(topic, "failed"),
		failures:       c.failures.WithLabelValues(topic),
		forwardSeconds: c.forwardSeconds.WithLabelValues(topic),
		commitSeconds:  c.commitSeconds.WithLabelValues(topic),
		inFlight:       c.inFlight.WithLabelValues(topic, number),
		up:             c.lanes.WithLabelValues(topic, number),
	}
	for o := range m.outcomes {
		m.outcomes[o] = c.records.WithLabelValues(topic, Outcome(o).String())
	}
	for _, v := range dedup.Verdicts() {
		m.verdicts = append(m.verdicts, c.verdicts.WithLabelValues(topic, v.String()))
	}
	return m
}

// count adds a committed batch.
func (m *Metrics) count(p *plan) {
	m.committed.Inc()
	for o, n := range p.outcomes {
		m.outcomes[o].Add(float64(n))
	}
	for v := range m.verdicts {
		m.verdicts[v].Add(float64(p.verdicts[v]))
	}
}
