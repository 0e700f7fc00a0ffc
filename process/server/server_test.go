package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/process/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is a source that counts: each snapshot has handled ten records more.
type process struct {
	mu        sync.Mutex
	snapshots int
	err       error         // of LookUp
	hold      chan struct{} // LookUp waits for it
	asked     [][]byte
	text      string // in every text of the snapshot
}

func (p *process) Snapshot() server.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.snapshots++
	n, lag, at := float64(10*p.snapshots), int64(100+p.snapshots), time.Now()
	return server.Snapshot{
		Pipelines: []server.Pipeline{{
			Input: "orders", Output: "orders.clean", ConsumerGroup: "orders-dedup",
			Delivery: "exactly_once", Mode: "enforce",
			Lanes: []server.Lane{{
				Lane: 0, State: server.LaneRunning, InHand: 7, Partitions: 1,
				Failure: &server.Failure{Text: "broker away" + p.text, Hint: "wait", At: at},
			}},
			Partitions: []server.Partition{{Partition: 3, DoneTo: int64(n), Lag: &lag}},
			Outcomes:   []server.Count{{Name: "forwarded", Total: n}, {Name: "duplicate"}},
			Verdicts:   []server.Count{{Name: "first", Total: n}},
			Batches:    []server.Count{{Name: "committed", Total: float64(p.snapshots)}},
		}},
		Store: server.Store{
			Type: "embedded", Claims: []server.Count{{Name: "applied", Total: n}},
			Blocked: []string{},
			Facts:   []server.Fact{{Name: "disk_used", Value: 4096, Unit: "bytes"}},
		},
		Events: []server.Event{{
			Level: "WARN", Message: "lane failed" + p.text, Error: "broker away" + p.text,
			Details: "pause=1s" + p.text,
			Topic:   "orders", Lane: "0", Count: 2, First: at, Last: at,
		}},
	}
}

func (p *process) Settings() []server.Setting {
	return []server.Setting{{Name: "kafka.brokers", Value: "a:9092"},
		{Name: "log.level", Value: "info", Default: true}}
}

// fixed are checks that stay the same.
func fixed(checks ...server.Check) func() []server.Check {
	return func() []server.Check { return checks }
}

func (p *process) LookUp(ctx context.Context, topic string, id []byte) (server.Finding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold != nil {
		p.mu.Unlock()
		select {
		case <-p.hold:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	p.asked = append(p.asked, id)
	return server.Finding{
		Rows: []server.Row{{Name: "seen", Text: "yes, in " + topic}},
		JSON: map[string]any{"seen": true},
	}, p.err
}

func (p *process) Change(
	_ context.Context, change server.Change, topic string, id []byte,
) (said string, err error) {
	return fmt.Sprintf("%s %s of %s", change, id, topic), p.err
}

// options are for a server on any free local port.
func options() server.Options {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total",
		Help: "Things."}))
	return server.Options{
		Listen: "127.0.0.1:0", Gatherer: registry, Logger: slog.New(slog.DiscardHandler),
		Lookup: true, Source: &process{},
		About: server.About{
			Instance: "test", Version: "v1.2.3", Started: time.Now(),
		},
	}
}

// start runs a server until the test ends and returns its URL, without the slash at the end.
func start(t *testing.T, o server.Options) string {
	t.Helper()
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return strings.TrimSuffix(s.URL(), "/")
}

// ask sends one request. An empty body means none; otherwise it is a form.
func ask(
	t *testing.T, method, url, body string, change ...func(*http.Request),
) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range change {
		c(request)
	}
	answer, err := (&http.Client{
		Transport: http.DefaultTransport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, body := ask(t, "GET", url, "")
	return answer.StatusCode, body
}

func TestReadinessShowsEveryCheckAndFailsWithOne(t *testing.T) {
	o := options()
	o.Checks = fixed(
		server.Check{Name: "store", Func: func(context.Context) error { return nil }},
		server.Check{Name: "orders", Func: func(context.Context) error {
			return errors.New("lane 1: joining")
		}},
	)
	url := start(t, o)
	status, body := get(t, url+"/readyz")
	if want := "store: ok\norders: lane 1: joining\n"; status != http.StatusServiceUnavailable ||
		body != want {
		t.Errorf("got %d %q, want 503 %q", status, body, want)
	}
	if status, _ := get(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: got %d: a process that is not ready still lives", status)
	}
}

func TestAWrongAddressNamesTheSetting(t *testing.T) {
	o := options()
	o.Listen = "127.0.0.1:99999"
	_, err := server.New(o)
	if err == nil || !strings.HasPrefix(err.Error(), "server.listen: ") {
		t.Errorf("got %v", err)
	}
}
