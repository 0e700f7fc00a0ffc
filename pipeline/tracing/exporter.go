package tracing

import (
	"context"
	"crypto/tls"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"

	"github.com/kdedup/kdedup/internal/otlp"
)

// exporterTo connects to nobody yet.
func exporterTo(ctx context.Context, c otlp.Collector) (sdktrace.SpanExporter, error) {
	target, err := c.Target(otlp.Traces)
	if err != nil {
		return nil, err
	}
	if target.GRPC {
		return otlptracegrpc.New(ctx, overGRPC.Options(target)...)
	}
	// The encoding is set because the environment may ask for JSON.
	return otlptracehttp.New(ctx, append(overHTTP.Options(target),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf))...)
}

var overHTTP = otlp.Exporter[otlptracehttp.Option]{
	Timeout: otlptracehttp.WithTimeout, URL: otlptracehttp.WithEndpointURL,
	Headers: otlptracehttp.WithHeaders, TLS: otlptracehttp.WithTLSClientConfig,
}

var overGRPC = otlp.Exporter[otlptracegrpc.Option]{
	Timeout: otlptracegrpc.WithTimeout, URL: otlptracegrpc.WithEndpointURL,
	Headers: otlptracegrpc.WithHeaders,
	TLS: func(c *tls.Config) otlptracegrpc.Option {
		return otlptracegrpc.WithTLSCredentials(credentials.NewTLS(c))
	},
}
