package e2e_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/otlptest"
)

// collector takes spans by OTLP/HTTP.
type collector struct {
	url string

	mu       sync.Mutex
	spans    []*trace.Span
	services map[string]bool
	refuse   bool
}

func newCollector(t *testing.T) *collector {
	c := &collector{services: make(map[string]bool)}
	c.url = otlptest.OverHTTP(t, c)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := &collect.ExportTraceServiceRequest{}
	err := otlptest.Read(r, request)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Token") != "hunter2" ||
		c.refuse {
		http.Error(w, fmt.Sprint("refused: ", err), http.StatusForbidden)
		return
	}
	for _, of := range request.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			c.services[a.Key+"="+a.Value.GetStringValue()] = true
		}
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// outcomes are those of the spans in a trace, in the order of the input.
func (c *collector) outcomes(traceID string) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.spans, func(a, b *trace.Span) int {
		return int(number(a, "messaging.kafka.offset") - number(b, "messaging.kafka.offset"))
	})
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == traceID {
			all = append(all, text(s, "kdedup.outcome"))
		}
	}
	return all
}

func (c *collector) named(name string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			n++
		}
	}
	return n
}

func text(s *trace.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

func number(s *trace.Span, key string) int64 {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetIntValue()
		}
	}
	return 0
}

const tracing = "tracing: {enabled: true, endpoint: %q, headers: [{name: x-token, value: " +
	"hunter2}], sample_ratio: 1, timeout: 2s}"

// produceTraced writes records with the IDs to one partition, each with its producer's context.
func (d *deployment) produceTraced(traceID string, ids ...string) {
	d.t.Helper()
	for _, id := range ids {
		r := &kgo.Record{Topic: d.input, Partition: 0, Value: []byte("order"),
			Headers: []kgo.RecordHeader{
				{Key: "message-id", Value: []byte(id)},
				{Key: "traceparent", Value: []byte("00-" + traceID + "-b7ad6b7169203331-01")},
			}}
		if err := d.client.ProduceSync(d.t.Context(), r).FirstErr(); err != nil {
			d.t.Fatal(err)
		}
	}
}

func TestTracesReachACollector(t *testing.T) {
	t.Parallel()
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	c := newCollector(t)
	d := deployAt(t, inProcess(t), exactlyOnce)
	d.addSettings(fmt.Sprintf(tracing, c.url))
	d.produceTraced(traceID, "a", "b", "a")
	one := d.start("one")
	d.waitFor(1)
	one.stop() // it exports the last spans
	if diff := cmp.Diff(
		[]string{"forwarded", "forwarded", "duplicate"}, c.outcomes(traceID),
	); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if batches := c.named("batch " + d.input); batches == 0 || c.named("claim") != batches ||
		c.named("commit") != batches {
		t.Errorf("%d batches, %d claims, %d commits", batches, c.named("claim"), c.named("commit"))
	}
	for _, want := range []string{"service.name=kdedup", "service.instance.id=one"} {
		if !c.services[want] {
			t.Errorf("no span is of %s: %v", want, c.services)
		}
	}
	clean := 0
	testkit.ReadCommitted(t, d.output(), func(r *kgo.Record) {
		clean++
		if len(r.Headers) != 2 || string(r.Headers[1].Value) != "00-"+traceID+
			"-b7ad6b7169203331-01" {
			t.Errorf("the headers changed: %v", r.Headers)
		}
	}, kgo.SeedBrokers(d.brokers...))
	if clean != 2 {
		t.Errorf("%d clean records, want 2", clean)
	}
}

// Records go on, and the process stops in time.
func TestACollectorThatRefusesDisturbsNothing(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.refuse = true
	d := deployAt(t, inProcess(t), exactlyOnce)
	d.addSettings(fmt.Sprintf(tracing, c.url))
	d.produceTraced("0af7651916cd43dd8448eb211c80319c", "a", "b")
	one := d.start("one")
	d.waitFor(1)
	testkit.Eventually(t, time.Minute, "failed spans", func() bool {
		for _, m := range one.scrape()["kdedup_trace_spans_total"].GetMetric() {
			if m.GetLabel()[0].GetValue() == "failed" {
				return m.GetCounter().GetValue() > 0
			}
		}
		return false
	})
	one.stop()
}

// names are those of the spans, by trace and span.
func (c *collector) names() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]string)
	for _, s := range c.spans {
		all[hex.EncodeToString(s.TraceId)+" "+hex.EncodeToString(s.SpanId)] = s.Name
	}
	return all
}
