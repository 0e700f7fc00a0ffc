package tracing

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kdedup/kdedup/internal/outage"
)

// outlet is the end of the queue. It counts what the exporter did, and warns, but not often.
type outlet struct {
	waiting atomic.Int64 // spans that ended and have not left
	dropped atomic.Int64 // since the last warning about it

	exporter sdktrace.SpanExporter
	metrics  *Metrics
	log      *slog.Logger
	failing  *outage.Reporter
	hide     *strings.Replacer // takes secrets out of errors
	life     context.Context   // ends when what waits is given up
	close    context.CancelFunc

	warned time.Time // only the exporting goroutine uses it
}

var _ sdktrace.SpanExporter = (*outlet)(nil)

func newOutlet(
	to sdktrace.SpanExporter, m *Metrics, hide *strings.Replacer, log *slog.Logger,
) *outlet {
	o := &outlet{exporter: to, metrics: m, hide: hide, log: log,
		failing: outage.New(outage.Options{Message: "spans were not exported",
			Recovered: "the collector takes spans again", Logger: log}).Reporter("", 0, nil)}
	o.life, o.close = context.WithCancel(context.Background())
	return o
}

// ExportSpans never fails: nobody but the log and the metrics would hear of it.
func (o *outlet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.life, cancel)()
	err := o.exporter.ExportSpans(ctx, spans)
	o.waiting.Add(-int64(len(spans)))
	if err != nil {
		o.metrics.failed.Add(float64(len(spans)))
		o.failing.Report(errors.New(o.hide.Replace(clean(err.Error()))),
			"hint", "see tracing.endpoint; records go on without traces")
	} else {
		o.metrics.exported.Add(float64(len(spans)))
		o.failing.Recovered()
	}
	o.warn()
	return nil
}

// quiet is the pause between two warnings of what was dropped.
const quiet = time.Minute

func (o *outlet) warn() {
	if !o.warned.IsZero() && time.Since(o.warned) < quiet || o.dropped.Load() == 0 {
		return
	}
	o.warned = time.Now()
	if n := o.dropped.Swap(0); n > 0 {
		o.log.Warn("spans were dropped: the collector takes them more slowly than they come",
			"spans", n)
	}
}

// Shutdown closes the connection to the collector.
func (o *outlet) Shutdown(ctx context.Context) error {
	o.failing.Forget()
	return o.exporter.Shutdown(ctx)
}
