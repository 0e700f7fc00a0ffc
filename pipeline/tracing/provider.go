package tracing

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Options describe the traces of a process.
type Options struct {
	Collector   Collector
	SampleRatio float64 // share of the batches that are traced
	Instance    string
	Version     string
	Metrics     *Metrics
	Logger      *slog.Logger
}

// Provider sends the spans of a process to a collector.
type Provider struct{ sdk *sdktrace.TracerProvider }

// Open starts the export. The collector need not be there: only settings that make no sense are
// errors.
func Open(ctx context.Context, o Options) (*Provider, error) {
	quieten(o.Logger)
	exporter, err := o.Collector.exporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := o.resource(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	out := newOutlet(exporter, o.Metrics, o.Collector.hider(), o.Logger)
	return &Provider{sdktrace.NewTracerProvider(
		sdktrace.WithSampler(Sampler(o.SampleRatio)),
		sdktrace.WithResource(about),
		sdktrace.WithSpanProcessor(newQueue(out, o.Collector.Timeout, o.Metrics)),
	)}, nil
}

// resource says who sends the spans. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win.
func (o Options) resource(ctx context.Context) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			semconv.ServiceName("kdedup"), semconv.ServiceInstanceID(o.Instance),
			semconv.ServiceVersion(o.Version),
		),
		resource.WithFromEnv(),
	)
}

// Tracer makes the spans of one pipeline.
func (p *Provider) Tracer(t Topic) *Tracer { return NewTracer(p.sdk, t) }

// Close exports what waits, until ctx ends. The pipelines have returned by then.
func (p *Provider) Close(ctx context.Context) error {
	if err := p.sdk.Shutdown(ctx); err != nil {
		return fmt.Errorf("export the last spans: %w", err)
	}
	return nil
}

// quieten sends what the SDK says about itself to our log. It has one place for that in a process.
func quieten(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Debug("opentelemetry", "error", err)
	}))
	otel.SetLogger(logr.New(complaints{log}))
}

// complaints are what the SDK finds wrong with its environment variables. It adds their values,
// which may be secrets: only what it was doing is logged.
type complaints struct{ log *slog.Logger }

var _ logr.LogSink = complaints{}

// Init implements logr.LogSink.
func (complaints) Init(logr.RuntimeInfo) {}

// Enabled leaves out all that is not an error.
func (complaints) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (complaints) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (c complaints) Error(_ error, doing string, _ ...any) {
	c.log.Warn("opentelemetry cannot use an OTEL_ variable", "doing", doing)
}

// WithValues implements logr.LogSink.
func (c complaints) WithValues(...any) logr.LogSink { return c }

// WithName implements logr.LogSink.
func (c complaints) WithName(string) logr.LogSink { return c }
