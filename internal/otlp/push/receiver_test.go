package push

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	collect "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"

	"github.com/kdedup/kdedup/internal/testkit/otlptest"
)

// receiver is a collector: what it got of each family lately, where the requests went with which
// header `authorization`, and who sent them.
type receiver struct {
	collect.UnimplementedMetricsServiceServer
	mu       sync.Mutex
	refuses  string // the text with which it answers; empty: it takes what comes
	requests []string
	from     map[string]string
	families map[string]*metrics.Metric
}

func (r *receiver) keep(to, authorization string, request *collect.ExportMetricsServiceRequest) (
	refusal string,
) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses != "" {
		return r.refuses
	}
	r.requests = append(r.requests, strings.TrimSpace(to+" "+authorization))
	r.from, r.families = make(map[string]string), make(map[string]*metrics.Metric)
	for _, of := range request.ResourceMetrics {
		for _, a := range of.Resource.Attributes {
			r.from[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				r.families[m.Name] = m
			}
		}
	}
	return ""
}

func (r *receiver) refuse(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = why
}

// count is the value of a counter's only series, -1 if it has not come.
func (r *receiver) count(name string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	points := r.families[name].GetSum().GetDataPoints()
	if len(points) == 0 {
		return -1
	}
	return points[0].GetAsDouble()
}

// exemplars are those of a histogram, as value, trace and span.
func (r *receiver) exemplars(name string) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.families[name].GetHistogram().GetDataPoints() {
		for _, e := range p.Exemplars {
			all = append(all, fmt.Sprint(e.GetAsDouble(), " ", hex.EncodeToString(e.TraceId), " ",
				hex.EncodeToString(e.SpanId)))
		}
	}
	return all
}

// ServeHTTP is OTLP/HTTP.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	message := &collect.ExportMetricsServiceRequest{}
	if err := otlptest.Read(request, message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if why := r.keep(request.URL.Path, request.Header.Get("Authorization"), message); why != "" {
		http.Error(w, why, http.StatusForbidden)
	}
}

// Export is OTLP/gRPC.
func (r *receiver) Export(
	ctx context.Context, message *collect.ExportMetricsServiceRequest,
) (*collect.ExportMetricsServiceResponse, error) {
	if why := r.keep("grpc", otlptest.Authorization(ctx), message); why != "" {
		return nil, fmt.Errorf("refused: %s", why)
	}
	return &collect.ExportMetricsServiceResponse{}, nil
}

func servedOverHTTP(t *testing.T, r *receiver) string { return otlptest.OverHTTP(t, r) }

func servedOverGRPC(t *testing.T, r *receiver) string {
	return otlptest.OverGRPC(t, func(s *grpc.Server) {
		collect.RegisterMetricsServiceServer(s, r)
	})
}
