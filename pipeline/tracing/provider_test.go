package tracing

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/otlp"
	"github.com/kdedup/kdedup/internal/testkit/otlptest"
	"github.com/kdedup/kdedup/pipeline"
)

// received is what a collector got: of each request where it went, its header `authorization`, and
// the resource and the names of the spans.
type received struct {
	collect.UnimplementedTraceServiceServer
	mu   sync.Mutex
	got  []string
	from map[string]string
}

func (r *received) keep(path, authorization string, request *collect.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from = make(map[string]string)
	for _, spans := range request.ResourceSpans {
		for _, a := range spans.Resource.Attributes {
			r.from[a.Key] = a.Value.GetStringValue()
		}
		for _, s := range spans.ScopeSpans {
			for _, span := range s.Spans {
				r.got = append(r.got, path+" "+authorization+" "+span.Name)
			}
		}
	}
}

// ServeHTTP is OTLP/HTTP.
func (r *received) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	message := &collect.ExportTraceServiceRequest{}
	if err := otlptest.Read(request, message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.keep(request.URL.Path, request.Header.Get("Authorization"), message)
}

// Export is OTLP/gRPC.
func (r *received) Export(
	ctx context.Context, message *collect.ExportTraceServiceRequest,
) (*collect.ExportTraceServiceResponse, error) {
	r.keep("grpc", otlptest.Authorization(ctx), message)
	return &collect.ExportTraceServiceResponse{}, nil
}

func servedOverHTTP(t *testing.T, r *received) string { return otlptest.OverHTTP(t, r) }

func servedOverGRPC(t *testing.T, r *received) string {
	return otlptest.OverGRPC(t, func(s *grpc.Server) { collect.RegisterTraceServiceServer(s, r) })
}

// send exports the trace of an empty batch.
func send(t *testing.T, c otlp.Collector) {
	t.Helper()
	c.Timeout = 30 * time.Second
	p, err := Open(t.Context(), Options{
		Collector: c, SampleRatio: 1, Instance: "kdedup-0", Version: "v1.2.3",
		Metrics: NewMetrics(prometheus.NewRegistry()),
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	tracer := p.Tracer(Topic{Input: "orders"})
	tracer.Begin(0, &consumer.Batch{}, time.Now()).End(pipeline.Ending{Result: "committed"})
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSpansReachACollector(t *testing.T) {
	headers := map[string]string{"authorization": "Bearer hunter2"}
	for _, c := range []struct {
		name  string
		serve func(*testing.T, *received) string
		to    func(url string, set func(name, value string)) otlp.Collector
		want  string
	}{
		{"over HTTP", servedOverHTTP, func(url string, _ func(string, string)) otlp.Collector {
			return otlp.Collector{Endpoint: url}
		}, "/v1/traces "},
		{"over HTTP with a path", servedOverHTTP,
			func(url string, _ func(string, string)) otlp.Collector {
				return otlp.Collector{Endpoint: url + "/otlp/"}
			}, "/otlp/v1/traces "},
		{"over HTTP with the whole path", servedOverHTTP,
			func(url string, _ func(string, string)) otlp.Collector {
				return otlp.Collector{Endpoint: url + "/otlp/v1/traces"}
			}, "/otlp/v1/traces "},
		{"over HTTP with headers", servedOverHTTP,
			func(url string, _ func(string, string)) otlp.Collector {
				return otlp.Collector{Endpoint: url, Protocol: "http/protobuf", Headers: headers}
			}, "/v1/traces Bearer hunter2"},
		{"over gRPC with headers", servedOverGRPC,
			func(url string, _ func(string, string)) otlp.Collector {
				return otlp.Collector{Endpoint: url, Protocol: "grpc", Headers: headers}
			}, "grpc Bearer hunter2"},
		{"of the environment over HTTP", servedOverHTTP,
			func(url string, set func(string, string)) otlp.Collector {
				set("OTEL_EXPORTER_OTLP_ENDPOINT", url)
				set("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2")
				return otlp.Collector{}
			}, "/v1/traces Bearer hunter2"},
		{"of the environment over gRPC", servedOverGRPC,
			func(url string, set func(string, string)) otlp.Collector {
				set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
				set("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
				return otlp.Collector{}
			}, "grpc "},
		{"of the settings, which win over the environment", servedOverHTTP,
			func(url string, set func(string, string)) otlp.Collector {
				set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
				set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")
				set("OTEL_EXPORTER_OTLP_HEADERS", "authorization=other")
				set("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
				return otlp.Collector{Endpoint: url, Protocol: "http/protobuf", Headers: headers}
			}, "/v1/traces Bearer hunter2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &received{}
			send(t, c.to(c.serve(t, r), t.Setenv))
			if diff := cmp.Diff(
				[]string{c.want + " poll", c.want + " batch orders"}, r.got,
			); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpansSayWhoSendsThem(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	r := &received{}
	send(t, otlp.Collector{Endpoint: servedOverHTTP(t, r)})
	for name, want := range map[string]string{
		"service.name": "kdedup", "service.instance.id": "kdedup-0", "service.version": "v1.2.3",
		"deployment.environment.name": "staging",
	} {
		if r.from[name] != want {
			t.Errorf("%s is %q, want %q", name, r.from[name], want)
		}
	}
}

func TestSpansReachACollectorOverTLS(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			r := &received{}
			overGRPC := grpc.NewServer()
			collect.RegisterTraceServiceServer(overGRPC, r)
			server := httptest.NewUnstartedServer(
				http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
					if strings.HasPrefix(request.Header.Get("Content-Type"), "application/grpc") {
						overGRPC.ServeHTTP(w, request)
						return
					}
					r.ServeHTTP(w, request)
				}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			authorities := x509.NewCertPool()
			authorities.AddCert(server.Certificate())
			send(t, otlp.Collector{Endpoint: server.URL, Protocol: protocol,
				TLS: &tls.Config{RootCAs: authorities}})
			if len(r.got) != 2 {
				t.Errorf("got %v", r.got)
			}
		})
	}
}

func TestAnUnknownProtocolIsRefusedWithItsVariable(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	_, err := Open(t.Context(), Options{Logger: slog.New(slog.DiscardHandler)})
	want :=
		`tracing: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or grpc, got "http/json"; or set tracing.protocol`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The SDK would print the header that it cannot read.
func TestAWrongVariableIsReportedWithoutItsValue(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "hunter2")
	log := &bytes.Buffer{}
	p, err := Open(t.Context(), Options{
		Collector: otlp.Collector{Endpoint: "http://127.0.0.1:1", Timeout: time.Second},
		Metrics:   NewMetrics(prometheus.NewRegistry()),
		Logger:    slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "OTEL_ variable") ||
		strings.Contains(text, "hunter2") {
		t.Errorf("logged: %s", text)
	}
}
