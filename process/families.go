package process

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup/claimmetrics"
	"github.com/kdedup/kdedup/internal/otlp/push"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/pipeline/tracing"
	"github.com/kdedup/kdedup/process/build"
)

// families are the metrics that all lanes share.
type families struct {
	consumer *consumer.Collectors
	claims   *claimmetrics.Collectors
	pipeline *pipeline.Collectors
	config   *telemetry.Config
	started  prometheus.Gauge
	waiting  prometheus.Gauge
	clusters *telemetry.Clusters // nil where there is one
	tracing  *tracing.Metrics
	push     *push.Metrics
}

func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	telemetry.Build(registry, build.Version())
	return registry
}

func newFamilies(reg prometheus.Registerer, c config.Config) families {
	f := families{
		config:   telemetry.NewConfig(reg),
		started:  telemetry.Started(reg),
		waiting:  telemetry.Waiting(reg),
		consumer: consumer.NewCollectors(reg),
		claims:   claimmetrics.NewCollectors(reg),
		pipeline: pipeline.NewCollectors(reg),
		tracing:  tracing.NewMetrics(reg),
		push:     push.NewMetrics(reg),
	}
	if c.Kafka.Output.Apart() {
		f.clusters = telemetry.NewClusters(reg)
	}
	if c.Metrics.PerPartition {
		f.pipeline.PerPartition(reg)
	} else {
		f.consumer.PerTopic()
	}
	return f
}

// retire takes away the series of an input's lanes, which have ended.
func (f families) retire(input string) {
	f.claims.Retire(input)
	f.pipeline.Retire(input)
}

// forget takes away all series of an input whose lanes have ended.
func (f families) forget(input string) {
	f.consumer.Forget(input)
	f.claims.Forget(input)
	f.pipeline.Forget(input)
}

// ConfigHash is equal for processes that do the same. The instance differs on purpose, and secrets
// print as hidden.
func ConfigHash(c config.Config) string {
	c.Instance, c.UnknownEnv, c.NumberedEnv = "", nil, nil
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // structs of texts, numbers and lists
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%x", sum[:6])
}
