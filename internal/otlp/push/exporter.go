package push

import (
	"context"
	"crypto/tls"

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
		return otlpmetricgrpc.New(ctx, overGRPC.Options(target)...)
	}
	return otlpmetrichttp.New(ctx, overHTTP.Options(target)...)
}

var overHTTP = otlp.Exporter[otlpmetrichttp.Option]{
	Timeout: otlpmetrichttp.WithTimeout, URL: otlpmetrichttp.WithEndpointURL,
	Headers: otlpmetrichttp.WithHeaders, TLS: otlpmetrichttp.WithTLSClientConfig,
}

var overGRPC = otlp.Exporter[otlpmetricgrpc.Option]{
	Timeout: otlpmetricgrpc.WithTimeout, URL: otlpmetricgrpc.WithEndpointURL,
	Headers: otlpmetricgrpc.WithHeaders,
	TLS: func(c *tls.Config) otlpmetricgrpc.Option {
		return otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(c))
	},
}
