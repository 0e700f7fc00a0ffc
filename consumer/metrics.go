package consumer

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the series of one pipeline's group members.
type Metrics struct {
	lag        *partitionGauge
	held       *partitionGauge
	hidden     *partitionGauge // records behind an open transaction
	hiddenFor  *partitionGauge
	rebalances prometheus.Counter
	consumed   prometheus.Counter
	rewinds    prometheus.Counter
	dataLoss   prometheus.Counter
	skipped    *prometheus.CounterVec // without series before it counts: most inputs skip nothing
	room       *prometheus.GaugeVec   // by lane

	mu     sync.Mutex
	passed map[int32]int64 // up to where skipped has counted, by partition
}

// Collectors are the metric families that all pipelines of a process share.
type Collectors struct {
	lag        *prometheus.GaugeVec
	held       *prometheus.GaugeVec
	hidden     *prometheus.GaugeVec
	hiddenFor  *prometheus.GaugeVec
	perTopic   bool
	rebalances *prometheus.CounterVec
	consumed   *prometheus.CounterVec
	rewinds    *prometheus.CounterVec
	dataLoss   *prometheus.CounterVec
	skipped    *prometheus.CounterVec
	room       *prometheus.GaugeVec
}

// NewCollectors registers the families.
func NewCollectors(reg prometheus.Registerer) *Collectors {
	topic := []string{"topic"}
	c := &Collectors{
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_consumer_lag",
			Help: "Records between the committed offset and the last stable offset of an " +
				"assigned partition; with metrics.per_partition: false the sum of a topic's.",
		}, []string{"topic", "partition"}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_partition_held",
			Help: "1 for an assigned partition that waits at a record that can be delivered " +
				"nowhere; otherwise there is no series; with metrics.per_partition: false how " +
				"many of a topic's do.",
		}, []string{"topic", "partition"}),
		hidden: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_input_open_transaction_records",
			Help: "Offsets between the last stable offset and the end of an assigned partition: " +
				"they wait for a producer's open transaction, and are in no lag; with " +
				"metrics.per_partition: false the sum of a topic's.",
		}, []string{"topic", "partition"}),
		hiddenFor: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_input_open_transaction_seconds",
			Help: "For how long this process has seen an open transaction hold the last stable " +
				"offset of an assigned partition where it is; with metrics.per_partition: false " +
				"the longest of a topic's.",
		}, []string{"topic", "partition"}),
		rebalances: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_rebalances_total",
			Help: "Assignments that the group gave to a lane.",
		}, topic),
		consumed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_consumed_records_total",
			Help: "Records of the batches whose offsets were committed, counted by the group " +
				"member: kdedup_records_total adds up to the same.",
		}, topic),
		rewinds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_rewinds_total",
			Help: "Partitions that began below their fence: somebody set the group's offsets back.",
		}, topic),
		dataLoss: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_input_data_loss_total",
			Help: "Times that the input's log was cut below records that were consumed.",
		}, topic),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_input_skipped_offsets_total",
			Help: "Offsets of the input that are not read on purpose: those before the first " +
				"start with start: latest, and those over which the group's offsets were set " +
				"forward with on_skip: accept. There is no series before that.",
		}, topic),
		room: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_batch_limit_bytes",
			Help: "How many bytes a lane's next batch may have: batch_bytes, or less while " +
				"larger batches take too much of their time.",
		}, []string{"topic", "lane"}),
	}
	reg.MustRegister(c.lag, c.held, c.hidden, c.hiddenFor, c.rebalances, c.consumed, c.rewinds,
		c.dataLoss, c.skipped, c.room)
	return c
}

// PerTopic leaves the partition out of the lag: inputs of many partitions make many series.
func (c *Collectors) PerTopic() *Collectors {
	c.perTopic = true
	return c
}

// For returns the metrics of one pipeline; topic is the input topic.
func (c *Collectors) For(topic string) *Metrics {
	gauge := func(family *prometheus.GaugeVec, join func(a, b float64) float64) *partitionGauge {
		if !c.perTopic {
			join = nil
		}
		return newPartitionGauge(family.MustCurryWith(prometheus.Labels{"topic": topic}), join)
	}
	return &Metrics{
		lag:        gauge(c.lag, sum),
		held:       gauge(c.held, sum),
		hidden:     gauge(c.hidden, sum),
		hiddenFor:  gauge(c.hiddenFor, largest),
		rebalances: c.rebalances.WithLabelValues(topic),
		consumed:   c.consumed.WithLabelValues(topic),
		rewinds:    c.rewinds.WithLabelValues(topic),
		dataLoss:   c.dataLoss.WithLabelValues(topic),
		skipped:    c.skipped.MustCurryWith(prometheus.Labels{"topic": topic}),
		passed:     make(map[int32]int64),
		room:       c.room.MustCurryWith(prometheus.Labels{"topic": topic}),
	}
}

// Forget takes away every series of a topic whose members have left.
func (c *Collectors) Forget(topic string) {
	for _, family := range []*prometheus.GaugeVec{c.lag, c.held, c.hidden, c.hiddenFor, c.room} {
		family.DeletePartialMatch(prometheus.Labels{"topic": topic})
	}
	for _, family := range []*prometheus.CounterVec{c.rebalances, c.consumed, c.rewinds,
		c.dataLoss, c.skipped} {
		family.DeletePartialMatch(prometheus.Labels{"topic": topic})
	}
}

// Skipped counts offsets of a partition that are not read on purpose, each once.
func (m *Metrics) Skipped(partition int32, from, to int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if more := to - max(from, m.passed[partition]); more > 0 {
		m.skipped.WithLabelValues().Add(float64(more))
	}
	m.passed[partition] = max(to, m.passed[partition])
}

// BatchLimit is the gauge of a lane's BatchLimit.
func (m *Metrics) BatchLimit(lane int) prometheus.Gauge {
	return m.room.WithLabelValues(strconv.Itoa(lane))
}

// forgetPartition takes away what a partition's next owner exports.
func (m *Metrics) forgetPartition(partition int32) {
	for _, gauge := range []*partitionGauge{m.lag, m.held, m.hidden, m.hiddenFor} {
		gauge.forget(partition)
	}
}

// partitionGauge is a gauge of each partition that this process has, or one of all of them.
type partitionGauge struct {
	gauge    *prometheus.GaugeVec // by partition, or one without
	perTopic func(a, b float64) float64

	mu     sync.Mutex
	values map[int32]float64
}

// newPartitionGauge: perTopic joins the values to one; nil keeps them apart.
func newPartitionGauge(
	gauge *prometheus.GaugeVec, perTopic func(a, b float64) float64,
) *partitionGauge {
	return &partitionGauge{gauge: gauge, perTopic: perTopic, values: make(map[int32]float64)}
}

func (g *partitionGauge) set(partition int32, value float64) {
	if g.perTopic == nil {
		g.gauge.WithLabelValues(strconv.Itoa(int(partition))).Set(value)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values[partition] = value
	g.joinLocked()
}

// forget takes the series away: the partition's next owner exports its own.
func (g *partitionGauge) forget(partition int32) {
	if g.perTopic == nil {
		g.gauge.DeleteLabelValues(strconv.Itoa(int(partition)))
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.values, partition)
	g.joinLocked()
}

// joinLocked sets the one series of the topic. Without a partition there is none.
func (g *partitionGauge) joinLocked() {
	if len(g.values) == 0 {
		g.gauge.DeleteLabelValues("")
		return
	}
	joined := 0.0
	for _, value := range g.values {
		joined = g.perTopic(joined, value)
	}
	g.gauge.WithLabelValues("").Set(joined)
}

func sum(a, b float64) float64 { return a + b }

func largest(a, b float64) float64 { return max(a, b) }
