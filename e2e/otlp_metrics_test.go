package e2e_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collect "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/otlptest"
)

// meter takes metrics by OTLP/HTTP, and keeps what each family was lately.
type meter struct {
	url string

	mu       sync.Mutex
	families map[string]*metrics.Metric
}

func newMeter(t *testing.T) *meter {
	m := &meter{}
	m.url = otlptest.OverHTTP(t, m)
	return m
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := &collect.ExportMetricsServiceRequest{}
	err := otlptest.Read(r, request)
	if err != nil || r.URL.Path != "/v1/metrics" {
		http.Error(w, fmt.Sprint("refused: ", err), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.families = make(map[string]*metrics.Metric)
	for _, of := range request.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, metric := range scope.Metrics {
				m.families[metric.Name] = metric
			}
		}
	}
}

// outcomes are kdedup_records_total, those that are not zero.
func (m *meter) outcomes() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make(map[string]float64)
	for _, point := range m.families["kdedup_records_total"].GetSum().GetDataPoints() {
		for _, a := range point.Attributes {
			if a.Key == "outcome" && point.GetAsDouble() > 0 {
				found[a.Value.GetStringValue()] = point.GetAsDouble()
			}
		}
	}
	return found
}

// traces are those of the exemplars of a histogram.
func (m *meter) traces(name string) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, point := range m.families[name].GetHistogram().GetDataPoints() {
		for _, e := range point.Exemplars {
			found = append(found, hex.EncodeToString(e.TraceId))
		}
	}
	return found
}

// openMetrics scrapes as Prometheus does.
func (i *instance) openMetrics() string {
	i.t.Helper()
	return string(i.get("/metrics", "application/openmetrics-text;version=1.0.0"))
}

var (
	exemplar  = regexp.MustCompile(`(?m)^(\w+)_bucket\{.* # \{(.*)\}`)
	itsTrace  = regexp.MustCompile(`trace_id="(\w{32})"`)
	itsSpan   = regexp.MustCompile(`span_id="(\w{16})"`)
	noExample = []string{"", "none"}
)

// exemplars are the spans of each histogram's, as trace and span.
func exemplars(openMetrics string) map[string][]string {
	found := make(map[string][]string)
	for _, match := range exemplar.FindAllStringSubmatch(openMetrics, -1) {
		trace, span := itsTrace.FindStringSubmatch(match[2]), itsSpan.FindStringSubmatch(match[2])
		if trace == nil || span == nil {
			trace, span = noExample, noExample
		}
		found[match[1]] = append(found[match[1]], trace[1]+" "+span[1])
	}
	return found
}

// From a slow bucket one comes to the trace of a record in it, by a scrape and by OTLP.
func TestExemplarsLeadToSpansThatACollectorHas(t *testing.T) {
	t.Parallel()
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	c, m := newCollector(t), newMeter(t)
	d := deployAt(t, inProcess(t), exactlyOnce)
	d.addSettings(fmt.Sprintf(tracing, c.url))
	d.addSettings(fmt.Sprintf("metrics: {otlp: {enabled: true, endpoint: %q, interval: 1s}}",
		m.url))
	d.produceTraced(traceID, "a", "b", "a")
	one := d.start("one")
	d.waitFor(1)
	testkit.Eventually(t, time.Minute, "counters that move", func() bool {
		return len(m.outcomes()) > 0
	})
	text := one.openMetrics()
	one.stop() // it exports the last spans and metrics
	if !strings.HasSuffix(text, "# EOF\n") {
		t.Error("the scrape is not whole")
	}
	spans := c.names()
	found := exemplars(text)
	for name, want := range map[string]string{
		"kdedup_end_to_end_seconds":       "process " + d.input,
		"kdedup_forward_duration_seconds": "batch " + d.input,
		"kdedup_commit_duration_seconds":  "batch " + d.input,
	} {
		if len(found[name]) == 0 {
			t.Errorf("%s has no exemplar", name)
		}
		for _, span := range found[name] {
			if spans[span] != want {
				t.Errorf("%s leads to %s, which is the span %q, want %q", name, span, spans[span],
					want)
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"forwarded": 2, "duplicate": 1},
		m.outcomes()); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if got := m.traces("kdedup_end_to_end_seconds"); !slices.Contains(got, traceID) {
		t.Errorf("by OTLP the exemplars are of %v", got)
	}
}

// Records go on, the process stops in time, and the log tells it once.
func TestACollectorOfMetricsThatIsDownDisturbsNothing(t *testing.T) {
	t.Parallel()
	d := deployAt(t, inProcess(t), exactlyOnce)
	d.addSettings("metrics: {otlp: {enabled: true, endpoint: 'http://127.0.0.1:1', interval: 1s}}")
	d.produceTraced("0af7651916cd43dd8448eb211c80319c", "a", "b")
	one := d.start("one")
	d.waitFor(1)
	testkit.Eventually(t, time.Minute, "failed exports", func() bool {
		for _, m := range one.scrape()["kdedup_metric_exports_total"].GetMetric() {
			if m.GetLabel()[0].GetValue() == "failed" {
				return m.GetCounter().GetValue() > 1
			}
		}
		return false
	})
	one.stop()
	if n := strings.Count(one.text(), "the collector does not take the metrics"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
}
