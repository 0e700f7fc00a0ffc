package tracing

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
)

// The protocols, as OTEL_EXPORTER_OTLP_PROTOCOL names them.
const (
	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"
)

// Collector is where spans go. What is empty follows the OTEL_EXPORTER_OTLP_… variables.
type Collector struct {
	Endpoint string // a URL; for HTTP the base, to which v1/traces is added
	Protocol string // http/protobuf or grpc
	Headers  map[string]string
	TLS      *tls.Config   // only with https
	Timeout  time.Duration // of one export, with its repeats
}

// exporter connects to nobody yet.
func (c Collector) exporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	switch protocol := c.protocol(); protocol {
	case protocolHTTP:
		return otlptracehttp.New(ctx, c.http()...)
	case protocolGRPC:
		return otlptracegrpc.New(ctx, c.grpc()...)
	default:
		return nil,
			fmt.Errorf(
				"OTEL_EXPORTER_OTLP_PROTOCOL must be %s or %s, got %q; or set tracing.protocol",
				protocolHTTP, protocolGRPC, protocol)
	}
}

func (c Collector) protocol() string {
	return cmp.Or(c.Protocol, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
		os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), protocolHTTP)
}

// endpoint is empty if the environment has one, which the exporters read.
func (c Collector) endpoint(normal string) string {
	if c.Endpoint == "" && cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) == "" {
		return normal
	}
	return c.Endpoint
}

func (c Collector) http() []otlptracehttp.Option {
	// The encoding is set because the environment may ask for JSON.
	options := []otlptracehttp.Option{otlptracehttp.WithTimeout(c.Timeout),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf)}
	if endpoint := c.endpoint("http://localhost:4318"); endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(tracesURL(endpoint)))
	}
	if len(c.Headers) > 0 {
		options = append(options, otlptracehttp.WithHeaders(c.Headers))
	}
	if c.TLS != nil {
		options = append(options, otlptracehttp.WithTLSClientConfig(c.TLS))
	}
	return options
}

func (c Collector) grpc() []otlptracegrpc.Option {
	options := []otlptracegrpc.Option{otlptracegrpc.WithTimeout(c.Timeout)}
	if endpoint := c.endpoint("http://localhost:4317"); endpoint != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(endpoint))
	}
	if len(c.Headers) > 0 {
		options = append(options, otlptracegrpc.WithHeaders(c.Headers))
	}
	if c.TLS != nil {
		options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(c.TLS)))
	}
	return options
}

// tracesURL adds the path of traces to a base. Configuration has checked the URL.
func tracesURL(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || strings.HasSuffix(u.Path, "/v1/traces") {
		return endpoint
	}
	return u.JoinPath("v1", "traces").String()
}

// hider takes the values of the headers out of a text.
func (c Collector) hider() *strings.Replacer {
	var pairs []string
	for _, value := range c.Headers {
		pairs = append(pairs, value, "[hidden]")
	}
	return strings.NewReplacer(pairs...)
}
