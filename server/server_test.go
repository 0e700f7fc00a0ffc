package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server until the test ends and returns its URL.
func start(t *testing.T, checks ...server.Check) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."}))
	s, err := server.New(server.Options{
		Listen: "127.0.0.1:0", Gatherer: registry, Checks: checks, Logger: slog.New(slog.DiscardHandler),
	})
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
	return "http://" + s.Addr()
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestEndpoints(t *testing.T) {
	url := start(t)
	for _, c := range []struct {
		path   string
		status int
		text   string
	}{
		{"/", 200, "/readyz"},
		{"/healthz", 200, "ok"},
		{"/readyz", 200, ""},
		{"/metrics", 200, "things_total 0"},
		{"/other", 404, ""},
	} {
		if status, body := get(t, url+c.path); status != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s: got %d %q, want %d with %q", c.path, status, body, c.status, c.text)
		}
	}
}

func TestReadinessShowsEveryCheckAndFailsWithOne(t *testing.T) {
	url := start(t,
		server.Check{Name: "store", Func: func(context.Context) error { return nil }},
		server.Check{Name: "orders", Func: func(context.Context) error { return errors.New("lane 1: joining") }},
	)
	status, body := get(t, url+"/readyz")
	if want := "store: ok\norders: lane 1: joining\n"; status != http.StatusServiceUnavailable || body != want {
		t.Errorf("got %d %q, want 503 %q", status, body, want)
	}
	if status, _ := get(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: got %d: a process that is not ready still lives", status)
	}
}

func TestAWrongAddressNamesTheSetting(t *testing.T) {
	_, err := server.New(server.Options{Listen: "127.0.0.1:99999", Gatherer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.HasPrefix(err.Error(), "server.listen: ") {
		t.Errorf("got %v", err)
	}
}
