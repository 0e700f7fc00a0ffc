package tracing

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Metrics count what became of the spans.
type Metrics struct{ exported, failed, dropped prometheus.Counter }

// NewMetrics registers the family; all its series exist from the start.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kdedup_trace_spans_total",
		Help: "Spans by what became of them; zero without tracing.",
	}, []string{"result"})
	reg.MustRegister(spans)
	return &Metrics{
		exported: spans.WithLabelValues("exported"),
		failed:   spans.WithLabelValues("failed"),
		dropped:  spans.WithLabelValues("dropped"),
	}
}

// maxWaiting is the most spans that wait for the collector. A lane ends those of a whole batch at
// once.
const maxWaiting = 16384

// queue hands the spans that ended to the SDK's processor, which exports them in the background. It
// is the queue that drops what is too much, because the SDK's own drops in silence.
type queue struct {
	processor sdktrace.SpanProcessor
	outlet    *outlet
	metrics   *Metrics
}

var _ sdktrace.SpanProcessor = (*queue)(nil)

// newQueue starts a goroutine, which Shutdown ends.
func newQueue(to *outlet, timeout time.Duration, m *Metrics) *queue {
	return &queue{
		processor: sdktrace.NewBatchSpanProcessor(to, sdktrace.WithMaxQueueSize(maxWaiting),
			sdktrace.WithExportTimeout(timeout)),
		outlet: to, metrics: m,
	}
}

// OnStart implements sdktrace.SpanProcessor.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd waits for nobody.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.outlet.waiting.Add(1) > maxWaiting {
		q.outlet.waiting.Add(-1)
		q.outlet.dropped.Add(1)
		q.metrics.dropped.Inc()
		return
	}
	q.processor.OnEnd(s)
}

// ForceFlush implements sdktrace.SpanProcessor.
func (q *queue) ForceFlush(ctx context.Context) error { return q.processor.ForceFlush(ctx) }

// Shutdown exports what waits, until ctx ends; then the rest is given up.
func (q *queue) Shutdown(ctx context.Context) error {
	defer q.outlet.close()
	return q.processor.Shutdown(ctx)
}
