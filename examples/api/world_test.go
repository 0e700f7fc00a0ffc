package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	keys "github.com/kdedup/kdedup/idempotency/embedded"
	"github.com/kdedup/kdedup/internal/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs the API on files until the test ends.
func serve(t *testing.T) (url string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	store, err := embedded.Open(embedded.Options{Path: filepath.Join(t.TempDir(), "claims"),
		Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	held, err := keys.Open(keys.Options{Path: filepath.Join(t.TempDir(), "keys"), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	scopes := make(map[string]dedup.Scope)
	for _, name := range []string{"orders", "payments"} {
		scopes[name] = dedup.Scope{ConsumerGroup: "api", Name: name, TTL: time.Hour, Buckets: 1,
			Extractor: "api"}
		if err := store.Register(t.Context(), scopes[name]); err != nil {
			t.Fatal(err)
		}
	}
	server, err := api.New(api.Options{Listen: "127.0.0.1:0", Store: store, Keys: held,
		Scopes:  func(name string) (dedup.Scope, bool) { s, ok := scopes[name]; return s, ok },
		Ready:   func(context.Context) error { return nil },
		Limits:  api.Limits{Bytes: 1 << 20, Batch: 1000, Requests: 100, Wait: 10 * time.Second},
		Metrics: api.NewMetrics(prometheus.NewRegistry()), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for _, err := range []error{<-ended, held.Close(), store.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return server.URL()
}

// world is where the effects take place: it hears of each, with the ID or key that it belongs to.
// As a resource that takes keys does, it answers a repetition with the first receipt.
type world struct {
	*httptest.Server

	mu       sync.Mutex
	attempts map[string][]string // the bodies, by key
	hangs    map[string]bool     // keys whose next effect has no end
	hung     chan string
	gone     chan struct{} // closed when the test ends
}

func newWorld(t *testing.T) *world {
	w := &world{attempts: make(map[string][]string), hangs: make(map[string]bool),
		hung: make(chan string), gone: make(chan struct{})}
	w.Server = httptest.NewServer(w)
	t.Cleanup(func() {
		close(w.gone)
		w.Close()
	})
	return w
}

// ServeHTTP tells hung of an effect without an end, and waits for the death of who asked for it.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	body := make([]byte, r.ContentLength)
	_, _ = r.Body.Read(body)
	w.mu.Lock()
	w.attempts[key] = append(w.attempts[key], string(body))
	hangs := w.hangs[key]
	delete(w.hangs, key)
	w.mu.Unlock()
	if hangs {
		select {
		case w.hung <- key:
		case <-w.gone:
		}
		select {
		case <-r.Context().Done():
		case <-w.gone:
		}
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(rw, `{"receipt": "of %s"}`, key)
}

func (w *world) hang(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangs[key] = true
}

// of returns the attempts at the effect of a key.
func (w *world) of(key string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.attempts[key]...)
}
