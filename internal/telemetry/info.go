package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Build tells which version runs.
func Build(reg prometheus.Registerer, version string) {
	info(reg, "kdedup_build_info", "Always 1; the label tells the version.", "version", version)
}

// Config tells by a hash which configuration runs.
func Config(reg prometheus.Registerer, hash string) {
	info(reg, "kdedup_config_info",
		"Always 1; the label is the beginning of a SHA-256 over the configuration, without instance and secrets.", "hash", hash)
}

func info(reg prometheus.Registerer, name, help, label, value string) {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
	reg.MustRegister(g)
	g.WithLabelValues(value).Set(1)
}
