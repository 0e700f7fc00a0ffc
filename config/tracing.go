package config

import "time"

// Tracing sends OpenTelemetry traces to a collector, by OTLP. See docs/tracing.md. Without `tls`
// the same counts as in `metrics.otlp`.
type Tracing struct {
	// Whether traces are made. No `OTEL_…` variable switches them on.
	Enabled bool `mapstructure:"enabled"`
	// The collector, `http://host:port` or `https://host:port`. With `http/protobuf` the URL may
	// have a path, to which `/v1/traces` is added.
	//
	// Default: the one in `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`,
	// otherwise `http://localhost:4318`, or `:4317` with `grpc`.
	Endpoint string `mapstructure:"endpoint"`
	// `http/protobuf` or `grpc`.
	//
	// Default: the one in `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL` or `OTEL_EXPORTER_OTLP_PROTOCOL`,
	// otherwise `http/protobuf`.
	Protocol string `mapstructure:"protocol"`
	// Headers of each request. Empty: those in `OTEL_EXPORTER_OTLP_HEADERS`.
	Headers []OTLPHeader `mapstructure:"headers"`
	// Authorities and a client certificate for an `https://` endpoint.
	TLS TLS `mapstructure:"tls"`
	// Share of the batches that are traced, from `0` to `1`, and of the calls of the API. Records
	// and calls that come with a trace follow that instead.
	SampleRatio float64 `mapstructure:"sample_ratio"`
	// Whether the spans of records tell the message ID, which may be personal data.
	IncludeIDs bool `mapstructure:"include_ids"`
	// How long one export may take, with its repeats: `100ms` to `1m`. A stop waits for the last
	// one, within `shutdown_timeout`.
	Timeout time.Duration `mapstructure:"timeout"`
}

// OTLPHeader is one header of the requests to a collector.
type OTLPHeader struct {
	// Required. Name of the header.
	Name string `mapstructure:"name"`
	// Required. Its value.
	Value Secret `mapstructure:"value"`
}

// The protocols of OTLP.
const (
	OTLPOverHTTP = "http/protobuf"
	OTLPOverGRPC = "grpc"
)
