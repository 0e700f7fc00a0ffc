package consumer

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the series of one pipeline's group members.
type Metrics struct {
	lag        *prometheus.GaugeVec // by partition, or one without
	perTopic   bool
	rebalances prometheus.Counter
	consumed   prometheus.Counter
	rewinds    prometheus.Counter
	dataLoss   prometheus.Counter

	mu   sync.Mutex
	lags map[int32]int64 // of the partitions that this process has, for the sum
}

// Collectors are the metric families that all pipelines of a process share.
type Collectors struct {
	lag        *prometheus.GaugeVec
	perTopic   bool
	rebalances *prometheus.CounterVec
	consumed   *prometheus.CounterVec
	rewinds    *prometheus.CounterVec
	dataLoss   *prometheus.CounterVec
}

// NewCollectors registers the families.
func NewCollectors(reg prometheus.Registerer) *Collectors {
	topic := []string{"topic"}
	c := &Collectors{
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_consumer_lag",
			Help: "Records between the committed offset and the last stable offset of an assigned partition; with metrics.per_partition: false the sum of a topic's.",
		}, []string{"topic", "partition"}),
		rebalances: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_rebalances_total",
			Help: "Assignments that the group gave to a lane.",
		}, topic),
		consumed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_consumed_records_total",
			Help: "Records of the batches whose offsets were committed, counted by the group member: kdedup_records_total adds up to the same.",
		}, topic),
		rewinds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_rewinds_total",
			Help: "Partitions that began below their fence: somebody set the group's offsets back.",
		}, topic),
		dataLoss: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_input_data_loss_total",
			Help: "Times that the input's log was cut below records that were consumed.",
		}, topic),
	}
	reg.MustRegister(c.lag, c.rebalances, c.consumed, c.rewinds, c.dataLoss)
	return c
}

// PerTopic leaves the partition out of the lag: inputs of many partitions make many series.
func (c *Collectors) PerTopic() *Collectors {
	c.perTopic = true
	return c
}

// For returns the metrics of one pipeline; topic is the input topic.
func (c *Collectors) For(topic string) *Metrics {
	return &Metrics{
		lag:        c.lag.MustCurryWith(prometheus.Labels{"topic": topic}),
		perTopic:   c.perTopic,
		rebalances: c.rebalances.WithLabelValues(topic),
		consumed:   c.consumed.WithLabelValues(topic),
		rewinds:    c.rewinds.WithLabelValues(topic),
		dataLoss:   c.dataLoss.WithLabelValues(topic),
		lags:       make(map[int32]int64),
	}
}

// Forget takes away every series of a topic whose members have left.
func (c *Collectors) Forget(topic string) {
	c.lag.DeletePartialMatch(prometheus.Labels{"topic": topic})
	for _, family := range []*prometheus.CounterVec{c.rebalances, c.consumed, c.rewinds, c.dataLoss} {
		family.DeletePartialMatch(prometheus.Labels{"topic": topic})
	}
}

func (m *Metrics) setLag(partition int32, lag int64) {
	if !m.perTopic {
		m.lag.WithLabelValues(strconv.Itoa(int(partition))).Set(float64(lag))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lags[partition] = lag
	m.sumLocked()
}

// forgetLag takes the series away: the partition's next owner exports its own.
func (m *Metrics) forgetLag(partition int32) {
	if !m.perTopic {
		m.lag.DeleteLabelValues(strconv.Itoa(int(partition)))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lags, partition)
	m.sumLocked()
}

// sumLocked sets the one series of the topic. Without a partition there is none.
func (m *Metrics) sumLocked() {
	if len(m.lags) == 0 {
		m.lag.DeleteLabelValues("")
		return
	}
	sum := int64(0)
	for _, lag := range m.lags {
		sum += lag
	}
	m.lag.WithLabelValues("").Set(float64(sum))
}
