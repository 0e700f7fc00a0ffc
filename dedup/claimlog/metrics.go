package claimlog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of all logs of a store.
type metrics struct {
	reading, unread, bytes *prometheus.GaugeVec
	rebuilt, skewed        *prometheus.CounterVec

	kept             *prometheus.GaugeVec
	requests, hedged *prometheus.CounterVec
	steps            *prometheus.HistogramVec
}

// RegisterMetrics registers what a store with this registerer has.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help},
			[]string{"consumer_group"})
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			[]string{"consumer_group"})
	}
	m := &metrics{
		reading: gauge("kdedup_claim_log_reading",
			"1 while the claim log is read; 0 while it cannot be, and nothing is claimed."),
		unread: gauge("kdedup_claim_log_unread_blocks",
			"Blocks of the claim log that are still to be read before lanes claim."),
		bytes: gauge("kdedup_claim_log_index_bytes", "Size of the index's files."),
		rebuilt: counter("kdedup_claim_log_index_rebuilt_total",
			"How often the index was made again from the beginning of the claim log."),
		skewed: counter("kdedup_claim_log_skewed_blocks_total",
			"Blocks of claims whose time no clock explains, so that they claim nothing."),
	}
	m.kept = gauge("kdedup_claim_log_kept_shards",
		"Shards of the claim log for which this process answers; none where it keeps all.")
	m.hedged = counter("kdedup_claim_log_hedged_total",
		"Parts of batches for which a second keeper was asked, because the first one was slow.")
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kdedup_claim_log_keeper_requests_total",
		Help: "Requests to other keepers, by the keeper's instance and what became of them: " +
			"answered, busy or failed."}, []string{"consumer_group", "keeper", "result"})
	m.steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kdedup_claim_log_step_duration_seconds",
		Help: "Time of a step of a claim: until another keeper answers (ask), until the log has " +
			"a block (append), until it is read back (read_back), and of a request of another " +
			"process, in all (answer).",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
	}, []string{"consumer_group", "step"})
	if reg != nil {
		reg.MustRegister(m.steps, m.reading, m.unread, m.bytes, m.rebuilt, m.skewed, m.kept,
			m.hedged, m.requests)
	}
	return m
}

// of are those of one log. What a single shard has, its sharing adds up.
func (m *metrics) of(group string, shard int) spaceMetrics {
	appended := m.steps.WithLabelValues(group, "append")
	readBack := m.steps.WithLabelValues(group, "read_back")
	if shard != allShards {
		none := prometheus.GaugeOpts{Name: "none"}
		return spaceMetrics{
			reading: prometheus.NewGauge(none), unread: prometheus.NewGauge(none),
			bytes:   prometheus.NewGauge(none),
			rebuilt: m.rebuilt.WithLabelValues(group), skewed: m.skewed.WithLabelValues(group),
			appended: appended, readBack: readBack,
		}
	}
	return spaceMetrics{
		reading: m.reading.WithLabelValues(group), unread: m.unread.WithLabelValues(group),
		bytes: m.bytes.WithLabelValues(group), rebuilt: m.rebuilt.WithLabelValues(group),
		skewed: m.skewed.WithLabelValues(group), appended: appended, readBack: readBack,
	}
}

type spaceMetrics struct {
	reading, unread, bytes prometheus.Gauge
	rebuilt, skewed        prometheus.Counter
	appended, readBack     prometheus.Observer
}

// noteRead observes how long a block that stood in the log was waited for. Its reader may be faster
// than the word that it stands.
func (m *spaceMetrics) noteRead(p *part) {
	waited := 0.0
	if !p.stood.IsZero() {
		waited = time.Since(p.stood).Seconds()
	}
	m.readBack.Observe(waited)
}
