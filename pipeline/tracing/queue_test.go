package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kdedup/kdedup/internal/otlp"
)

// queued is a provider that exports to a collector, and what is logged and counted about it.
type queued struct {
	*sdktrace.TracerProvider
	metrics *Metrics
	log     *bytes.Buffer // read it after the shutdown
}

func newQueued(to sdktrace.SpanExporter, headers map[string]string) *queued {
	q := &queued{metrics: NewMetrics(prometheus.NewRegistry()), log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(q.log, nil))
	out := newOutlet(to, q.metrics, otlp.Collector{Headers: headers}.Hider(), log)
	q.TracerProvider = sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(newQueue(out, 30*time.Second, q.metrics)))
	return q
}

// end makes spans and ends them.
func (q *queued) end(n int) {
	for range n {
		_, span := q.Tracer("test").Start(context.Background(), "span")
		span.End()
	}
}

// counted are the spans by result.
func (q *queued) counted() map[string]int {
	return map[string]int{
		"exported": int(testutil.ToFloat64(q.metrics.exported)),
		"failed":   int(testutil.ToFloat64(q.metrics.failed)),
		"dropped":  int(testutil.ToFloat64(q.metrics.dropped)),
	}
}

func TestSpansAreExportedAtTheLatestWhenItStops(t *testing.T) {
	to := &collector{answer: func(context.Context) error { return nil }}
	q := newQueued(to, nil)
	q.end(1000)
	if err := q.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(
		map[string]int{"exported": 1000, "failed": 0, "dropped": 0}, q.counted(),
	); diff != "" || to.took != 1000 {
		t.Errorf("the collector took %d (-want +got):\n%s", to.took, diff)
	}
	if q.log.Len() > 0 {
		t.Errorf("logged: %s", q.log)
	}
}

// Lanes end their spans while the collector hangs, and never wait for it.
func TestWhatIsTooMuchForTheCollectorIsDroppedAndCounted(t *testing.T) {
	hang := make(chan struct{})
	to := &collector{answer: func(context.Context) error { <-hang; return nil }}
	q := newQueued(to, nil)
	q.end(maxWaiting + 5000)
	if n := q.counted()["dropped"]; n != 5000 {
		t.Errorf("%d spans were dropped, want 5000", n)
	}
	close(hang)
	if err := q.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(
		map[string]int{"exported": maxWaiting, "failed": 0, "dropped": 5000}, q.counted(),
	); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := q.log.String(); strings.Count(text, "spans were dropped") != 1 ||
		!strings.Contains(text, "spans=5000") {
		t.Errorf("logged: %s", text)
	}
}

func TestFailedExportsAreCountedAndWarnedAboutOnceWithoutSecrets(t *testing.T) {
	refuse := errors.New("401 Unauthorized: Bearer hunter2 is not known")
	q := newQueued(&collector{answer: func(context.Context) error { return refuse }},
		map[string]string{"authorization": "Bearer hunter2"})
	q.end(2000) // four exports
	if err := q.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(
		map[string]int{"exported": 0, "failed": 2000, "dropped": 0}, q.counted(),
	); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := q.log.String(); strings.Count(text, "spans were not exported") != 1 ||
		strings.Contains(text, "hunter2") || !strings.Contains(text, "401 Unauthorized: [hidden]") {
		t.Errorf("logged: %s", text)
	}
}

// The stop waits no longer than it is told, and leaves no goroutine behind.
func TestACollectorThatHangsDoesNotKeepTheProcess(t *testing.T) {
	to := &collector{answer: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	q := newQueued(to, nil)
	q.end(5000)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := q.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
