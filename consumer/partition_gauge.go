package consumer

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

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
