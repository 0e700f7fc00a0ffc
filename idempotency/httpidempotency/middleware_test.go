package httpidempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/httpidempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// byUser is the namespace of a request in these tests.
func byUser(r *http.Request) (string, error) {
	if user, _, ok := r.BasicAuth(); ok {
		return user, nil
	}
	return "", errors.New("no user")
}

// rig is a server whose handler is protected.
type rig struct {
	t    *testing.T
	url  string
	runs atomic.Int32
}

type setting struct {
	store    idempotency.Store
	executor idempotency.Options
	http     httpidempotency.Options
	outer    func(http.Handler) http.Handler
}

func newRig(t *testing.T, s setting, handle http.HandlerFunc) *rig {
	t.Helper()
	g := &rig{t: t}
	if s.store == nil {
		s.store = memory.New()
	}
	executor, err := idempotency.New(s.store, s.executor)
	if err != nil {
		t.Fatal(err)
	}
	if s.http.Namespace == nil {
		s.http.Namespace = byUser
	}
	protect, err := httpidempotency.New(executor, s.http)
	if err != nil {
		t.Fatal(err)
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.runs.Add(1)
		handle(w, r)
	}))
	if s.outer != nil {
		handler = s.outer(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = nil
	server.Start()
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// answer is what a client sees.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) replayed() bool { return a.header.Get(httpidempotency.ReplayedHeader) == "true" }

// request is a POST by Ann with the key "k", unless change says otherwise.
func (g *rig) request(body string, change ...func(*http.Request)) *http.Request {
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+"/payments?x=1",
		strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.SetBasicAuth("ann", "")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(httpidempotency.Header, `"k"`)
	for _, c := range change {
		c(r)
	}
	return r
}

func (g *rig) do(r *http.Request) (answer, error) {
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

func (g *rig) send(body string, change ...func(*http.Request)) answer {
	g.t.Helper()
	a, err := g.do(g.request(body, change...))
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

func (g *rig) wantRuns(want int32) {
	g.t.Helper()
	if got := g.runs.Load(); got != want {
		g.t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

func wantProblem(t *testing.T, a answer, status int, title string) {
	t.Helper()
	var p struct {
		Type, Title string
		Status      int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	if a.status != status || p.Status != status || !strings.Contains(p.Title, title) ||
		p.Type == "" ||
		a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %s %+v, want %d %q", a.status, a.header.Get("Content-Type"), p, status,
			title)
	}
}

func without(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(name) }
}
func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func created(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", "/payments/7")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "paid %s", body)
}

func TestARetryGetsTheRecordedResponse(t *testing.T) {
	g := newRig(t, setting{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=secret")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("X-Secret", "s")
		w.Header().Add("X-Many", "1")
		w.Header().Add("X-Many", "2")
		created(w, r)
		w.Header().Set("X-Late", "too late")
	})
	first := g.send(`10`)
	if first.status != http.StatusCreated || first.body != "paid 10" || first.replayed() ||
		first.header.Get("Set-Cookie") == "" {
		t.Errorf("first: %+v", first)
	}
	for range 2 {
		again := g.send(`10`)
		if !again.replayed() || again.status != first.status || again.body != first.body {
			t.Errorf("again: %+v", again)
		}
		for name, want := range map[string][]string{
			"Location": {"/payments/7"}, "X-Many": {"1", "2"},
			"Content-Type": first.header["Content-Type"],
			"Set-Cookie":   nil, "X-Hop": nil, "X-Late": nil, "Content-Length": {"7"},
		} {
			if diff := cmp.Diff(want, again.header[name]); diff != "" {
				t.Errorf("header %s: %s", name, diff)
			}
		}
	}
	g.wantRuns(1)
}

func TestOnlyWhatTheHandlerSetIsRecorded(t *testing.T) {
	var requests atomic.Int32
	g := newRig(t, setting{
		http: httpidempotency.Options{DropHeaders: []string{"x-secret"}},
		outer: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", fmt.Sprint(requests.Add(1)))
				w.Header().Set("Vary", "Origin")
				w.Header().Set("Server", "outer")
				next.ServeHTTP(w, r)
			})
		},
	}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		w.Header().Del("Server")
		w.Header().Set("X-Secret", "s")
		created(w, r)
	})
	first, again := g.send(`10`), g.send(`10`)
	if first.header.Get("X-Request-Id") != "1" || again.header.Get("X-Request-Id") != "2" {
		t.Errorf("request ids %q and %q", first.header["X-Request-Id"],
			again.header["X-Request-Id"])
	}
	want := []string{"Origin", "Accept"}
	if diff := cmp.Diff(
		[][]string{want, want}, [][]string{first.header["Vary"], again.header["Vary"]},
	); diff != "" {
		t.Error(diff)
	}
	if first.header.Get("Server") != "" || first.header.Get("X-Secret") != "s" ||
		again.header.Get("X-Secret") != "" {
		t.Errorf("first %v, again %v", first.header, again.header)
	}
}

func TestKeysOfPrincipalsAreApart(t *testing.T) {
	g := newRig(t, setting{}, func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		fmt.Fprint(w, user)
	})
	for _, user := range []string{"ann", "bob", "ann"} {
		if got := g.send(`10`, func(r *http.Request) {
			r.SetBasicAuth(user, "")
		}); got.body != user {
			t.Errorf("%s got the response of %s", user, got.body)
		}
	}
	wantProblem(t, g.send(`10`, without("Authorization")), http.StatusUnauthorized, "unknown")
	wantProblem(t, g.send(`10`, func(r *http.Request) {
		r.SetBasicAuth(strings.Repeat("u", 256), "")
	}), http.StatusInternalServerError, "invalid")
	g.wantRuns(2)
}

func TestAnotherRequestWithTheSameKeyIsRefused(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"method":       func(r *http.Request) { r.Method = http.MethodPatch },
		"path":         func(r *http.Request) { r.URL.Path = "/refunds" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "x=2" },
		"content type": with("Content-Type", "text/plain"),
		"host":         func(r *http.Request) { r.Host = "other.example" },
		"body": func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("11")), 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, setting{}, created)
			g.send(`10`)
			wantProblem(t, g.send(`10`, change), http.StatusUnprocessableEntity, "another request")
			g.wantRuns(1)
		})
	}
	g := newRig(t, setting{http: httpidempotency.Options{ReusedStatus: http.StatusConflict}},
		created)
	g.send(`10`)
	wantProblem(t, g.send(`11`), http.StatusConflict, "another request")
}

func TestAMissingOrBadKeyIsABadRequest(t *testing.T) {
	g := newRig(t, setting{http: httpidempotency.Options{Docs: "https://example.com/docs"}},
		created)
	missing := g.send(`10`, without(httpidempotency.Header))
	wantProblem(t, missing, http.StatusBadRequest, "missing")
	if !strings.Contains(missing.body, "https://example.com/docs") {
		t.Errorf("no link to the documentation: %s", missing.body)
	}
	wantProblem(t, g.send(`10`, with(httpidempotency.Header, "unquoted")), http.StatusBadRequest,
		"invalid")
	g.wantRuns(0)
	lenient := newRig(t, setting{http: httpidempotency.Options{Optional: true, UnquotedKeys: true}},
		created)
	for range 2 {
		lenient.send(`10`, without(httpidempotency.Header))
		lenient.send(`10`, with(httpidempotency.Header, "unquoted"))
	}
	lenient.wantRuns(3)
}

func TestOtherMethodsPass(t *testing.T) {
	g := newRig(t, setting{}, created)
	for range 2 {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			g.send(``, func(r *http.Request) { r.Method = method })
		}
		g.send(``, func(r *http.Request) { r.Method = http.MethodPatch })
	}
	g.wantRuns(7)
}

func TestAConcurrentRequestIsAConflictOrWaits(t *testing.T) {
	for name, wait := range map[string]time.Duration{"conflict": 0, "wait": time.Minute} {
		t.Run(name, func(t *testing.T) {
			running, finish := make(chan struct{}), make(chan struct{})
			g := newRig(t, setting{http: httpidempotency.Options{Wait: wait}},
				func(w http.ResponseWriter, r *http.Request) {
					close(running)
					<-finish
					created(w, r)
				})
			var wg sync.WaitGroup
			wg.Go(func() { g.send(`10`) })
			<-running
			if wait == 0 {
				second := g.send(`10`)
				wantProblem(t, second, http.StatusConflict, "in progress")
				if second.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			} else {
				wg.Go(func() {
					if second := g.send(`10`); !second.replayed() {
						t.Errorf("got %+v", second)
					}
				})
			}
			close(finish)
			wg.Wait()
			g.wantRuns(1)
		})
	}
}

func TestWhichStatusIsRecorded(t *testing.T) {
	for _, row := range []struct {
		status   int
		options  httpidempotency.Options
		recorded bool
	}{
		{200, httpidempotency.Options{}, true},
		{204, httpidempotency.Options{}, true},
		{404, httpidempotency.Options{}, true},
		{408, httpidempotency.Options{}, false},
		{401, httpidempotency.Options{}, false},
		{403, httpidempotency.Options{}, false},
		{407, httpidempotency.Options{}, false},
		{421, httpidempotency.Options{}, false},
		{423, httpidempotency.Options{}, false},
		{425, httpidempotency.Options{}, false},
		{429, httpidempotency.Options{}, false},
		{500, httpidempotency.Options{}, false},
		{503, httpidempotency.Options{}, false},
		{503, httpidempotency.Options{Record: func(int) bool { return true }}, true},
		{404, httpidempotency.Options{Record: func(status int) bool { return status < 300 }},
			false},
	} {
		t.Run(fmt.Sprintf("%d recorded %t", row.status, row.recorded), func(t *testing.T) {
			g := newRig(t, setting{http: row.options,
				executor: idempotency.Options{FailuresAreFinal: true}},
				func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(row.status) })
			for n := range 2 {
				if got := g.send(`10`); got.status != row.status ||
					got.replayed() != (row.recorded && n == 1) {
					t.Errorf("request %d got %+v", n, got)
				}
			}
			g.wantRuns(map[bool]int32{true: 1, false: 2}[row.recorded])
		})
	}
}

func TestALargeRequestIsRefusedBeforeAnythingRuns(t *testing.T) {
	g := newRig(t, setting{http: httpidempotency.Options{MaxRequest: 10}}, created)
	wantProblem(t, g.send("eleven long"), http.StatusRequestEntityTooLarge, "too large")
	g.wantRuns(0)
	if got := g.send("ten bytes!"); got.body != "paid ten bytes!" {
		t.Errorf("got %+v", got)
	}
}

func TestALargeResponseReachesItsClientAndIsNotRepeated(t *testing.T) {
	for _, size := range []int{990, 5000} { // too large with its headers; too large to be held back
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			g := newRig(t, setting{executor: idempotency.Options{MaxResponse: 1000}},
				func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusCreated)
					for range size / 10 {
						fmt.Fprint(w, "0123456789")
					}
				})
			if first := g.send(`10`); first.status != http.StatusCreated ||
				len(first.body) != size {
				t.Errorf("first got %d and %d bytes", first.status, len(first.body))
			}
			again := g.send(`10`)
			wantProblem(t, again, http.StatusGone, "too large")
			if !strings.Contains(again.body, `"original_status":201`) {
				t.Errorf("got %s", again.body)
			}
			g.wantRuns(1)
		})
	}
}

func TestHandlersCannotStreamOrHijack(t *testing.T) {
	g := newRig(t, setting{}, func(w http.ResponseWriter, _ *http.Request) {
		_, flusher := w.(http.Flusher)
		_, _, hijack := http.NewResponseController(w).Hijack()
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprintln(w, flusher, errors.Is(http.NewResponseController(w).Flush(),
			http.ErrNotSupported), errors.Is(hijack, http.ErrNotSupported))
	})
	if got := g.send(`10`); got.body != "false true true\n" || got.status != 200 {
		t.Errorf("got %+v", got)
	}
}

// A client that hangs up does not stop its request, and its retry gets the response.
func TestAClientThatGoesAwayGetsItsResponseLater(t *testing.T) {
	running, finish, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	g := newRig(t, setting{http: httpidempotency.Options{Wait: time.Minute}},
		func(w http.ResponseWriter, r *http.Request) {
			if _, ok := idempotency.Token(r.Context()); !ok {
				t.Error("no fencing token")
			}
			close(running)
			<-finish
			ended <- r.Context().Err()
			created(w, r)
		})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := g.do(g.request(`10`).WithContext(ctx)); err == nil {
			t.Error("the client got a response")
		}
	})
	<-running
	cancel()
	wg.Wait()
	close(finish)
	if got := g.send(`10`); got.body != "paid 10" || !got.replayed() {
		t.Errorf("got %+v", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the handler's context: %v", err)
	}
	g.wantRuns(1)
}

func TestAPanicReleasesTheKey(t *testing.T) {
	var calm atomic.Bool
	g := newRig(t, setting{}, func(w http.ResponseWriter, r *http.Request) {
		if !calm.Load() {
			panic(http.ErrAbortHandler)
		}
		created(w, r)
	})
	if got, err := g.do(g.request(`10`)); err == nil {
		t.Errorf("got %+v", got)
	}
	calm.Store(true)
	// Go's client repeats a request with an Idempotency-Key by itself when the connection breaks.
	before := g.runs.Load()
	if got := g.send(`10`); got.body != "paid 10" || got.replayed() {
		t.Errorf("got %+v", got)
	}
	g.wantRuns(before + 1)
}

// broken is a store that fails from some swap on.
type broken struct {
	idempotency.Store
	from, swaps atomic.Int32
}

func (b *broken) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (idempotency.Record, bool, error) {
	if b.swaps.Add(1) >= b.from.Load() {
		return idempotency.Record{}, false, errors.New("connection refused")
	}
	return b.Store.Swap(ctx, key, old, next, ttl)
}

func TestAnOutageOfTheStore(t *testing.T) {
	brief := idempotency.Options{StoreTimeout: 200 * time.Millisecond}
	t.Run("before the handler ran", func(t *testing.T) {
		store := &broken{Store: memory.New()}
		g := newRig(t, setting{store: store, executor: brief}, created)
		wantProblem(t, g.send(`10`), http.StatusServiceUnavailable, "cannot be checked")
		g.wantRuns(0)
	})
	t.Run("after it ran", func(t *testing.T) {
		store := &broken{Store: memory.New()}
		store.from.Store(2)
		g := newRig(t, setting{store: store, executor: brief}, created)
		if got := g.send(`10`); got.status != http.StatusCreated || got.body != "paid 10" {
			t.Errorf("got %+v", got)
		}
		wantProblem(t, g.send(`10`), http.StatusServiceUnavailable, "cannot be checked")
		g.wantRuns(1)
	})
}

// The response of a process that was taken over must not be seen: another may be recorded.
func TestAZombieAnswersWithAConflict(t *testing.T) {
	store := memory.New()
	g := newRig(t, setting{store: store}, func(w http.ResponseWriter, r *http.Request) {
		key := idempotency.Key{Namespace: "ann", ID: "k"}
		record, err := store.Get(r.Context(), key)
		next := record
		next.Owner = idempotency.Owner{9}
		if _, done, swapErr := store.Swap(
			r.Context(), key, record.Version, next, time.Hour,
		); err != nil || !done || swapErr != nil {
			t.Error(err, done, swapErr)
		}
		created(w, r)
	})
	wantProblem(t, g.send(`10`), http.StatusConflict, "in progress")
}

func TestOptionsThatMakeNoSenseAreNamed(t *testing.T) {
	executor, err := idempotency.New(memory.New(), idempotency.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, o := range map[string]httpidempotency.Options{
		"Namespace: must be set":              {},
		"MaxRequest: must be positive":        {Namespace: byUser, MaxRequest: -1},
		"ReusedStatus: must be 400 to 499":    {Namespace: byUser, ReusedStatus: 200},
		"ReusedStatus: must be 400 to 499, g": {Namespace: byUser, ReusedStatus: 500},
	} {
		if _, err := httpidempotency.New(executor, o); err == nil ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

func TestManyRequestsWithOneKeyAreHandledOnce(t *testing.T) {
	g := newRig(t, setting{http: httpidempotency.Options{Wait: time.Minute}}, created)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if got, err := g.do(g.request(`10`)); err != nil || got.status != http.StatusCreated ||
				got.body != "paid 10" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
	g.wantRuns(1)
}
