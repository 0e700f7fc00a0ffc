package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Clusters tells which of two Kafka clusters answers, and how fast.
type Clusters struct{ up, answer *prometheus.GaugeVec }

// NewClusters registers the families. A cluster has no series before it was asked.
func NewClusters(reg prometheus.Registerer) *Clusters {
	c := &Clusters{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_kafka_cluster_up",
			Help: "With kafka.output: 1 if a broker of the cluster (input, output) answered the " +
				"last question of /readyz within a second, 0 if none did. It is asked every 10 s.",
		}, []string{"cluster"}),
		answer: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_kafka_cluster_answer_seconds",
			Help: "With kafka.output: how long the last answer of a broker of the cluster took. " +
				"There is none while the cluster is away.",
		}, []string{"cluster"}),
	}
	reg.MustRegister(c.up, c.answer)
	return c
}

// Asked notes what became of a question to a broker of the cluster.
func (c *Clusters) Asked(cluster string, took time.Duration, err error) {
	if err != nil {
		c.up.WithLabelValues(cluster).Set(0)
		c.answer.DeleteLabelValues(cluster)
		return
	}
	c.up.WithLabelValues(cluster).Set(1)
	c.answer.WithLabelValues(cluster).Set(took.Seconds())
}
