package push

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/otlp"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sender is a process that has a counter and a histogram.
type sender struct {
	*Pusher
	records   prometheus.Counter
	latencies *telemetry.Histogram
	metrics   *Metrics
	log       *testkit.Printed
}

func newSender(t *testing.T, to otlp.Collector, every time.Duration) *sender {
	t.Helper()
	reg := prometheus.NewRegistry()
	s := &sender{log: &testkit.Printed{}, metrics: NewMetrics(reg),
		records: prometheus.NewCounter(prometheus.CounterOpts{Name: "records_total"}),
		latencies: telemetry.NewHistograms(reg, prometheus.HistogramOpts{Name: "latency_seconds",
			Buckets: []float64{1, 10}}, "topic").With("orders")}
	reg.MustRegister(s.records)
	to.Timeout = 30 * time.Second
	var err error
	s.Pusher, err = New(t.Context(), Options{Collector: to, Interval: every, Gatherer: reg,
		Instance: "kdedup-0", Version: "v1.2.3", Metrics: s.metrics,
		Logger: slog.New(slog.NewTextHandler(s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	rarely = time.Hour
	often  = 10 * time.Millisecond
)

func TestMetricsReachACollector(t *testing.T) {
	headers := map[string]string{"authorization": "Bearer hunter2"}
	for _, c := range []struct {
		name  string
		serve func(*testing.T, *receiver) string
		to    func(url string, set func(name, value string)) otlp.Collector
		want  string
	}{
		{"over HTTP with a path and headers", servedOverHTTP,
			func(url string, _ func(string, string)) otlp.Collector {
				return otlp.Collector{Endpoint: url + "/otlp/", Headers: headers}
			}, "/otlp/v1/metrics Bearer hunter2"},
		{"over gRPC with headers", servedOverGRPC,
			func(url string, _ func(string, string)) otlp.Collector {
				return otlp.Collector{Endpoint: url, Protocol: "grpc", Headers: headers}
			}, "grpc Bearer hunter2"},
		{"of the environment over HTTP", servedOverHTTP,
			func(url string, set func(string, string)) otlp.Collector {
				set("OTEL_EXPORTER_OTLP_ENDPOINT", url)
				set("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2")
				return otlp.Collector{}
			}, "/v1/metrics Bearer hunter2"},
		{"of the environment over gRPC", servedOverGRPC,
			func(url string, set func(string, string)) otlp.Collector {
				set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", url)
				set("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")
				set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")
				return otlp.Collector{}
			}, "grpc"},
		{"of the settings, which win over the environment", servedOverHTTP,
			func(url string, set func(string, string)) otlp.Collector {
				set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
				set("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json")
				set("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
				set("OTEL_METRIC_EXPORT_TIMEOUT", "1")
				set("OTEL_METRIC_EXPORT_INTERVAL", "1")
				return otlp.Collector{Endpoint: url, Protocol: "http/protobuf"}
			}, "/v1/metrics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &receiver{}
			s := newSender(t, c.to(c.serve(t, r), t.Setenv), rarely)
			s.Start()
			s.records.Add(7)
			s.Stop(t.Context())
			if diff := cmp.Diff([]string{c.want}, r.requests); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := r.count("records_total"); got != 7 {
				t.Errorf("records_total is %v, want 7", got)
			}
		})
	}
}

func TestCountersAreSeenToMoveAndTheLastValuesLeaveWithTheStop(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	r := &receiver{}
	s := newSender(t, otlp.Collector{Endpoint: servedOverHTTP(t, r)}, often)
	s.Start()
	for _, want := range []float64{3, 6} {
		s.records.Add(3)
		testkit.Eventually(t, time.Minute, "the counter", func() bool {
			return r.count("records_total") == want
		})
	}
	s.records.Inc()
	s.Stop(t.Context())
	if got := r.count("records_total"); got != 7 {
		t.Errorf("in the end it is %v, want 7", got)
	}
	for name, want := range map[string]string{
		"service.name": "kdedup", "service.instance.id": "kdedup-0", "service.version": "v1.2.3",
		"deployment.environment.name": "staging",
	} {
		if r.from[name] != want {
			t.Errorf("%s is %q, want %q", name, r.from[name], want)
		}
	}
	if got := s.log.String(); got != "" {
		t.Errorf("logged: %s", got)
	}
}

// The bridge would send 32 digits in the place of 16 bytes.
func TestExemplarsNameTheirTraces(t *testing.T) {
	r := &receiver{}
	s := newSender(t, otlp.Collector{Endpoint: servedOverHTTP(t, r)}, rarely)
	s.Start()
	tally := s.latencies.Tally()
	for _, value := range []float64{0.5, 100} { // of the first bucket and of the last one
		tally.Observe(value, 1)
		tally.Exemplify(value, telemetry.Span{TraceID: [16]byte{0xab, 15: 1}, ID: [8]byte{7: 0xcd}})
	}
	s.latencies.Add(tally)
	s.Stop(t.Context())
	const in = " ab000000000000000000000000000001 00000000000000cd"
	if diff := cmp.Diff([]string{"0.5" + in, "100" + in},
		r.exemplars("latency_seconds")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	points := r.families["latency_seconds"].GetHistogram().GetDataPoints()
	if diff := cmp.Diff([]uint64{1, 0, 1}, points[0].BucketCounts); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
}

func TestACollectorThatRefusesIsToldOnceAndItsReturnToo(t *testing.T) {
	r := &receiver{}
	r.refuse("Bearer hunter2 is not known")
	s := newSender(t, otlp.Collector{Endpoint: servedOverHTTP(t, r),
		Headers: map[string]string{"authorization": "Bearer hunter2"}}, often)
	s.Start()
	testkit.Eventually(t, time.Minute, "five failures", func() bool {
		return testutil.ToFloat64(s.metrics.failed) >= 5
	})
	r.refuse("")
	testkit.Eventually(t, time.Minute, "three successes", func() bool {
		return testutil.ToFloat64(s.metrics.exported) >= 3
	})
	s.Stop(t.Context())
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") ||
		!strings.Contains(lines[0], "[hidden] is not known") ||
		!strings.Contains(lines[1], `msg="the collector takes the metrics again" after=`) {
		t.Errorf("logged: %q", lines)
	}
}

// The stop waits no longer than it is told, and leaves no goroutine behind.
func TestACollectorThatHangsDoesNotKeepTheProcess(t *testing.T) {
	asked, released := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-released
	}))
	defer server.Close()
	defer close(released)
	s := newSender(t, otlp.Collector{Endpoint: server.URL}, often)
	s.Start()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	s.Stop(ctx)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if got := s.log.String(); !strings.Contains(got, "the collector does not take the metrics") {
		t.Errorf("logged: %s", got)
	}
}

func TestAFamilyThatFailsHidesNoOther(t *testing.T) {
	r := &receiver{}
	s := newSender(t, otlp.Collector{Endpoint: servedOverHTTP(t, r)}, rarely)
	s.options.Gatherer.(*prometheus.Registry).MustRegister(broken{})
	s.Start()
	s.records.Add(7)
	s.Stop(t.Context())
	if got := r.count("records_total"); got != 7 {
		t.Errorf("records_total is %v, want 7", got)
	}
}

// broken is a collector whose only metric is an error.
type broken struct{}

var brokenDesc = prometheus.NewDesc("broken", "Broken.", nil, nil)

func (broken) Describe(to chan<- *prometheus.Desc) { to <- brokenDesc }

func (broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(brokenDesc, context.Canceled)
}

func TestAPusherThatNeverStartedSendsNothing(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		s := newSender(t, otlp.Collector{Endpoint: "http://127.0.0.1:1", Protocol: protocol}, often)
		s.Stop(t.Context())
		if got := testutil.ToFloat64(s.metrics.failed); got != 0 {
			t.Errorf("%s: %v exports", protocol, got)
		}
	}
}

func TestAnUnknownProtocolIsRefusedWithItsVariable(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	_, err := New(t.Context(), Options{Logger: slog.New(slog.DiscardHandler)})
	const want = `metrics: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or grpc, got ` +
		`"http/json"; or set metrics.otlp.protocol`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
