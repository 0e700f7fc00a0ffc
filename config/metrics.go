package config

import "time"

// Metrics says how fine the metrics are, and who else gets them. docs/metrics.md lists them.
type Metrics struct {
	// Whether lag and duplicates have a series for each input partition. With `false`, for inputs
	// of thousands of partitions, the lag of a topic is one number for each process, and duplicates
	// have none.
	PerPartition bool `mapstructure:"per_partition"`
	// Whether every input has series of its own. `auto`: not those of a pattern of more than 20
	// topics. `summed`: not those of any pattern, nor those that the file names, which are added up
	// as `named topics`. `all`: yes. docs/metrics.md tells what is added up.
	PerTopic PerTopic `mapstructure:"per_topic"`
	// Sends what /metrics shows to a collector.
	OTLP MetricsOTLP `mapstructure:"otlp"`
}

// PerTopic says whether inputs share series.
type PerTopic string

// Whether inputs share series.
const (
	PerTopicAuto   PerTopic = "auto"
	PerTopicAll    PerTopic = "all"
	PerTopicSummed PerTopic = "summed"
)

// MetricsOTLP sends the metrics to an OpenTelemetry collector, by OTLP, beside /metrics. See
// docs/tracing.md. Without `tls` an `https://` endpoint needs a certificate that the system trusts,
// or `OTEL_EXPORTER_OTLP_CERTIFICATE`, `…_CLIENT_CERTIFICATE` and `…_CLIENT_KEY`.
type MetricsOTLP struct {
	// Whether metrics are sent. No `OTEL_…` variable switches it on.
	Enabled bool `mapstructure:"enabled"`
	// The collector, `http://host:port` or `https://host:port`. With `http/protobuf` the URL may
	// have a path, to which `/v1/metrics` is added.
	//
	// Default: the one in `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`,
	// otherwise `http://localhost:4318`, or `:4317` with `grpc`.
	Endpoint string `mapstructure:"endpoint"`
	// `http/protobuf` or `grpc`.
	//
	// Default: the one in `OTEL_EXPORTER_OTLP_METRICS_PROTOCOL` or `OTEL_EXPORTER_OTLP_PROTOCOL`,
	// otherwise `http/protobuf`.
	Protocol string `mapstructure:"protocol"`
	// Headers of each request. Empty: those in `OTEL_EXPORTER_OTLP_HEADERS`.
	Headers []OTLPHeader `mapstructure:"headers"`
	// Authorities and a client certificate for an `https://` endpoint.
	TLS TLS `mapstructure:"tls"`
	// How often they are sent: `1s` to `1h`.
	Interval time.Duration `mapstructure:"interval"`
	// How long one export may take, with its repeats: `100ms` to `1m`. The last one of a stop ends
	// within `shutdown_timeout`, or takes a second.
	Timeout time.Duration `mapstructure:"timeout"`
}
