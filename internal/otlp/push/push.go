// Package push sends what /metrics shows to a collector, by OTLP, every now and then. Nobody waits
// for it: it reads the series as a scrape does.
package push

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/kdedup/kdedup/internal/otlp"
)

// Options describe the metrics of a process.
type Options struct {
	Collector otlp.Collector
	Interval  time.Duration // between two exports
	Instance  string
	Version   string
	Gatherer  prometheus.Gatherer
	Metrics   *Metrics
	Logger    *slog.Logger
}

// Pusher sends the metrics of a process, from Start to Stop.
type Pusher struct {
	options  Options
	outlet   *outlet
	about    *resource.Resource
	provider *sdkmetric.MeterProvider // nil before Start
}

// New connects to nobody yet. The collector need not be there: only settings that make no sense are
// errors.
func New(ctx context.Context, o Options) (*Pusher, error) {
	otlp.Quieten(o.Logger)
	exporter, err := exporterTo(ctx, o.Collector)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	about, err := otlp.Resource(ctx, o.Instance, o.Version)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return &Pusher{options: o, about: about,
		outlet: newOutlet(exporter, o.Metrics, o.Collector.Hider(), o.Logger)}, nil
}

// Start begins to send.
func (p *Pusher) Start() {
	p.provider = sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(p.about),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(p.outlet,
			sdkmetric.WithInterval(p.options.Interval),
			sdkmetric.WithTimeout(p.options.Collector.Timeout),
			sdkmetric.WithProducer(newSeries(p.options.Gatherer, p.options.Logger)))),
	)
}

// Stop sends once more, unless it never began, until ctx ends, and closes the connection. What
// fails is told by the outlet.
func (p *Pusher) Stop(ctx context.Context) {
	if p.provider == nil {
		_ = p.outlet.Shutdown(ctx)
		return
	}
	_ = p.provider.Shutdown(ctx)
}
