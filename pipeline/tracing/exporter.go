package tracing

import (
	"context"

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
		return otlptracegrpc.New(ctx, grpcOptions(target)...)
	}
	return otlptracehttp.New(ctx, httpOptions(target)...)
}

func httpOptions(t otlp.Target) []otlptracehttp.Option {
	// The encoding is set because the environment may ask for JSON.
	options := []otlptracehttp.Option{otlptracehttp.WithTimeout(t.Timeout),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf)}
	if t.URL != "" {
		options = append(options, otlptracehttp.WithEndpointURL(t.URL))
	}
	if len(t.Headers) > 0 {
		options = append(options, otlptracehttp.WithHeaders(t.Headers))
	}
	if t.TLS != nil {
		options = append(options, otlptracehttp.WithTLSClientConfig(t.TLS))
	}
	return options
}

func grpcOptions(t otlp.Target) []otlptracegrpc.Option {
	options := []otlptracegrpc.Option{otlptracegrpc.WithTimeout(t.Timeout)}
	if t.URL != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(t.URL))
	}
	if len(t.Headers) > 0 {
		options = append(options, otlptracegrpc.WithHeaders(t.Headers))
	}
	if t.TLS != nil {
		options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(t.TLS)))
	}
	return options
}
