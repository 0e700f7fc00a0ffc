package push

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc/credentials"

	"github.com/kdedup/kdedup/internal/otlp"
)

// exporterTo connects to nobody yet.
func exporterTo(ctx context.Context, c otlp.Collector) (sdkmetric.Exporter, error) {
	target, err := c.Target(otlp.Metrics)
	if err != nil {
		return nil, err
	}
	if target.GRPC {
		return otlpmetricgrpc.New(ctx, grpcOptions(target)...)
	}
	return otlpmetrichttp.New(ctx, httpOptions(target)...)
}

func httpOptions(t otlp.Target) []otlpmetrichttp.Option {
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithTimeout(t.Timeout)}
	if t.URL != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(t.URL))
	}
	if len(t.Headers) > 0 {
		options = append(options, otlpmetrichttp.WithHeaders(t.Headers))
	}
	if t.TLS != nil {
		options = append(options, otlpmetrichttp.WithTLSClientConfig(t.TLS))
	}
	return options
}

func grpcOptions(t otlp.Target) []otlpmetricgrpc.Option {
	options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithTimeout(t.Timeout)}
	if t.URL != "" {
		options = append(options, otlpmetricgrpc.WithEndpointURL(t.URL))
	}
	if len(t.Headers) > 0 {
		options = append(options, otlpmetricgrpc.WithHeaders(t.Headers))
	}
	if t.TLS != nil {
		options = append(options, otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(t.TLS)))
	}
	return options
}
