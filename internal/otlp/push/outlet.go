package push

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kdedup/kdedup/internal/outage"
)

// Metrics count what became of the exports.
type Metrics struct{ exported, failed prometheus.Counter }

// NewMetrics registers the family; all its series exist from the start.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	exports := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kdedup_metric_exports_total",
		Help: "Exports of the metrics to a collector by what became of them; zero without " +
			"metrics.otlp.",
	}, []string{"result"})
	reg.MustRegister(exports)
	return &Metrics{
		exported: exports.WithLabelValues("exported"),
		failed:   exports.WithLabelValues("failed"),
	}
}

// outlet is the last step before the exporter. It counts what that does, and tells once that the
// collector does not take the metrics, and once that it does again. Calls come one at a time.
type outlet struct {
	sdkmetric.Exporter
	metrics *Metrics
	hide    *strings.Replacer // takes secrets out of errors
	failing *outage.Reporter
}

func newOutlet(
	to sdkmetric.Exporter, m *Metrics, hide *strings.Replacer, log *slog.Logger,
) *outlet {
	return &outlet{Exporter: to, metrics: m, hide: hide, failing: outage.New(outage.Options{
		Message:   "the collector does not take the metrics, trying again",
		Recovered: "the collector takes the metrics again", Logger: log}).Reporter("", 0, nil)}
}

// Export never fails: nobody but the log and the metrics would hear of it.
func (o *outlet) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	err := o.Exporter.Export(ctx, all)
	switch {
	case err == nil:
		o.metrics.exported.Inc()
		o.failing.Recovered()
	case errors.Is(ctx.Err(), context.Canceled): // by the stop, and the last export follows
	default:
		o.metrics.failed.Inc()
		o.failing.Report(errors.New(o.hide.Replace(err.Error())),
			"hint", "see metrics.otlp.endpoint; /metrics has them")
	}
	return nil
}

// Shutdown closes the connection to the collector.
func (o *outlet) Shutdown(ctx context.Context) error {
	o.failing.Forget()
	return o.Exporter.Shutdown(ctx)
}
