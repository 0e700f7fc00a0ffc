package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Build tells which version runs.
func Build(reg prometheus.Registerer, version string) {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kdedup_build_info", Help: "Always 1; the label tells the version.",
	}, []string{"version"})
	reg.MustRegister(g)
	g.WithLabelValues(version).Set(1)
}

// Started tells whether the process has begun its work. It is 0 until the returned gauge is set.
func Started(reg prometheus.Registerer) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kdedup_started",
		Help: "1 since Kafka and the store were reached and the pipelines began; 0 while a start " +
			"waits for one of them.",
	})
	reg.MustRegister(g)
	return g
}

// Waiting tells how many topics that a pattern matches have no pipeline.
func Waiting(reg prometheus.Registerer) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kdedup_topics_waiting",
		Help: "Topics that an input.pattern matches and that have no pipeline, for a reason that " +
			"the log tells.",
	})
	reg.MustRegister(g)
	return g
}

// LogLines counts the lines of the log that nobody will read.
func LogLines(reg prometheus.Registerer, dropped func() uint64) {
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "kdedup_log_lines_dropped_total",
		Help: "Lines of the log that were dropped, because who reads the log is too slow, stands " +
			"still or is gone.",
	}, func() float64 { return float64(dropped()) }))
}

// Config is the family of the configuration in force and of what became of its last change.
type Config struct {
	info             *prometheus.GaugeVec
	successful, when prometheus.Gauge
}

// NewConfig registers the families.
func NewConfig(reg prometheus.Registerer) *Config {
	c := &Config{
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kdedup_config_info",
			Help: "Always 1; the label is the beginning of a SHA-256 over the configuration in " +
				"force, without instance and secrets.",
		}, []string{"hash"}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_config_last_reload_successful",
			Help: "1 if the last configuration that was read is in force, 0 if it was refused " +
				"and an older one runs on.",
		}),
		when: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kdedup_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was read: at the start, or by the last reload " +
				"that was not refused.",
		}),
	}
	reg.MustRegister(c.info, c.successful, c.when)
	return c
}

// Loaded says that a configuration is in force since then.
func (c *Config) Loaded(hash string, since time.Time) {
	c.info.Reset()
	c.info.WithLabelValues(hash).Set(1)
	c.successful.Set(1)
	c.when.Set(float64(since.UnixMilli()) / 1000)
}

// Refused says that a newer configuration is not in force.
func (c *Config) Refused() { c.successful.Set(0) }
