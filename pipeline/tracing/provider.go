package tracing

import (
	"context"
	"fmt"
	"log/slog"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kdedup/kdedup/internal/otlp"
)

// Options describe the traces of a process.
type Options struct {
	Collector   otlp.Collector
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
	otlp.Quieten(o.Logger)
	exporter, err := exporterTo(ctx, o.Collector)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := otlp.Resource(ctx, o.Instance, o.Version)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	out := newOutlet(exporter, o.Metrics, o.Collector.Hider(), o.Logger)
	return &Provider{sdktrace.NewTracerProvider(
		sdktrace.WithSampler(Sampler(o.SampleRatio)),
		sdktrace.WithResource(about),
		sdktrace.WithSpanProcessor(newQueue(out, o.Collector.Timeout, o.Metrics)),
	)}, nil
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
