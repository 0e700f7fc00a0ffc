package consumer

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the series of one pipeline's group members.
type Metrics struct {
	lag        *prometheus.GaugeVec // by partition
	rebalances prometheus.Counter
	rewinds    prometheus.Counter
	dataLoss   prometheus.Counter
}

// Collectors are the metric families that all pipelines of a process share.
type Collectors struct {
	lag        *prometheus.GaugeVec
	rebalances *prometheus.CounterVec
	rewinds    *prometheus.CounterVec
	dataLoss   *prometheus.CounterVec
}

// NewCollectors registers the families.
func NewCollectors(reg prometheus.Registerer) *Collectors {
	topic := []string{"topic"}
	c := &Collectors{
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_consumer_lag",
			Help: "Records between the committed offset and the last stable offset of an assigned partition.",
		}, []string{"topic", "partition"}),
		rebalances: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_rebalances_total",
			Help: "Assignments that the group gave to a lane.",
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
	reg.MustRegister(c.lag, c.rebalances, c.rewinds, c.dataLoss)
	return c
}

// For returns the metrics of one pipeline; topic is the input topic.
func (c *Collectors) For(topic string) *Metrics {
	return &Metrics{
		lag:        c.lag.MustCurryWith(prometheus.Labels{"topic": topic}),
		rebalances: c.rebalances.WithLabelValues(topic),
		rewinds:    c.rewinds.WithLabelValues(topic),
		dataLoss:   c.dataLoss.WithLabelValues(topic),
	}
}

func (m *Metrics) setLag(partition int32, lag int64) {
	m.lag.WithLabelValues(strconv.Itoa(int(partition))).Set(float64(lag))
}

// forgetLag takes the series away: the partition's next owner exports its own.
func (m *Metrics) forgetLag(partition int32) {
	m.lag.DeleteLabelValues(strconv.Itoa(int(partition)))
}
