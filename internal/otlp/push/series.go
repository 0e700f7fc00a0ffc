package push

import (
	"context"
	"encoding/hex"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// series turns Prometheus' series into OpenTelemetry's.
type series struct{ bridge sdkmetric.Producer }

var _ sdkmetric.Producer = series{}

func newSeries(g prometheus.Gatherer, log *slog.Logger) series {
	return series{bridge.NewMetricProducer(bridge.WithGatherer(all{g, log}))}
}

// Produce reads all series as they are now.
func (s series) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	scopes, err := s.bridge.Produce(ctx)
	for _, scope := range scopes {
		for _, metric := range scope.Metrics {
			if histogram, is := metric.Data.(metricdata.Histogram[float64]); is {
				for _, point := range histogram.DataPoints {
					decodeIDs(point.Exemplars)
				}
			}
		}
	}
	return scopes, err
}

// decodeIDs makes bytes of the traces' IDs, which the bridge hands on as it finds them in labels:
// in hexadecimal digits. A collector would refuse those.
func decodeIDs(exemplars []metricdata.Exemplar[float64]) {
	for i := range exemplars {
		e := &exemplars[i]
		e.TraceID, e.SpanID = decoded(e.TraceID), decoded(e.SpanID)
	}
}

func decoded(digits []byte) []byte {
	id := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(id, digits); err != nil {
		return nil
	}
	return id
}

// all gathers what it can: the bridge would leave out every family for one that fails.
type all struct {
	from prometheus.Gatherer
	log  *slog.Logger
}

// Gather implements prometheus.Gatherer.
func (a all) Gather() ([]*dto.MetricFamily, error) {
	families, err := a.from.Gather()
	if err != nil {
		a.log.Debug("some metrics are missing", "error", err)
	}
	return families, nil
}
