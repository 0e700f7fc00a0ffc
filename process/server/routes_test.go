package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/process/server"
)

func TestPathsAndMethods(t *testing.T) {
	url := start(t, options())
	for _, c := range []struct {
		method, path string
		status       int
		kind, text   string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", "<b>orders <span"},
		{"HEAD", "/", 200, "text/html; charset=utf-8", ""},
		{"POST", "/", 405, "", ""},
		{"PUT", "/", 405, "", ""},
		{"DELETE", "/api/status", 405, "", ""},
		{"GET", "/api/status", 200, "application/json", `"instance":"test"`},
		{"GET", "/api/config", 200, "application/json",
			`{"name":"kafka.brokers","value":"a:9092","default":false}`},
		{"GET", "/assets/status.css", 200, "text/css; charset=utf-8", "prefers-color-scheme"},
		{"GET", "/assets/status.js", 200, "text/javascript; charset=utf-8", "'use strict'"},
		{"GET", "/assets/icon.svg", 200, "image/svg+xml", "<svg"},
		{"GET", "/assets/status.html", 404, "", ""},
		{"GET", "/assets/", 404, "", ""},
		{"GET", "/healthz", 200, "", "ok"},
		{"POST", "/healthz", 404, "", ""},
		{"GET", "/readyz", 200, "", ""},
		{"GET", "/metrics", 200, "", "things_total 0"},
		{"GET", "/other", 404, "", ""},
		{"GET", "/lookup", 303, "", ""},
		{"GET", "/api/lookup", 405, "", ""},
		{"GET", "/debug/pprof/", 404, "", ""},
	} {
		answer, body := ask(t, c.method, url+c.path, "")
		kind := answer.Header.Get("Content-Type")
		if answer.StatusCode != c.status || !strings.Contains(body, c.text) || c.kind != "" &&
			kind != c.kind {
			t.Errorf("%s %s: got %d, %s, %.200q; want %d, %s with %q", c.method, c.path,
				answer.StatusCode, kind, body, c.status, c.kind, c.text)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy":      "frame-ancestors 'none'",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-",
		} {
			if got := answer.Header.Get(name); !strings.Contains(got, want) ||
				strings.Contains(got, "unsafe") {
				t.Errorf("%s %s: %s is %q", c.method, c.path, name, got)
			}
		}
	}
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	_, page := get(t, start(t, options())+"/")
	for _, foreign := range []string{"http://", "https://", "src=\"//", "style=", "onclick",
		"javascript:", "<style"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page contains %s", foreign)
		}
	}
}

func TestBrowsersKeepTheAssets(t *testing.T) {
	url := start(t, options()) + "/assets/status.css"
	first, _ := ask(t, "GET", url, "")
	again, body := ask(t, "GET", url, "", func(r *http.Request) {
		r.Header.Set("If-None-Match", first.Header.Get("ETag"))
	})
	if again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("got %d with %d bytes", again.StatusCode, len(body))
	}
}

func TestProfilesOnDemandAndNotForOtherSites(t *testing.T) {
	o := options()
	o.Pprof = true
	url := start(t, o)
	for _, c := range []struct {
		path, site string
		status     int
	}{
		{"/debug/pprof/", "", 200},
		{"/debug/pprof/", "none", 200},
		{"/debug/pprof/goroutine?debug=1", "same-origin", 200},
		{"/debug/pprof/cmdline", "cross-site", 403},
		{"/debug/pprof/profile", "same-site", 403},
	} {
		answer, _ := ask(t, "GET", url+c.path, "", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", c.site)
		})
		if answer.StatusCode != c.status {
			t.Errorf("%s from %q: got %d, want %d", c.path, c.site, answer.StatusCode, c.status)
		}
	}
}

func TestLookUps(t *testing.T) {
	long := strings.Repeat("x", 33<<10)
	for _, c := range []struct {
		name, body string
		status     int
		html, json string
		asked      string
	}{
		{"text", "id=a%26b+c", 200, "yes, in orders", `{"seen":true}`, "a&b c"},
		{"hexadecimal", "id=+00fF+&hex=1&topic=orders", 200, "yes, in orders", `{"seen":true}`,
			"\x00\xff"},
		{"no ID", "id=", 400, "enter a message ID", `{"error":"enter a message ID"}`, ""},
		{"half a byte", "id=abc&hex=1", 400, "not an even number of hexadecimal digits",
			`not an even number`, ""},
		{"another topic", "id=a&topic=none", 400, "topic must be orders", `topic must be orders`,
			""},
		{"too long", "id=" + long, 400, "the request is longer than 32768 bytes",
			"longer than 32768", ""},
		{"not a form", "%zz", 400, "the request is not a form", "not a form", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := &process{}
			o := options()
			o.Source = source
			url := start(t, o)
			answer, page := ask(t, "POST", url+"/lookup", c.body)
			if answer.StatusCode != c.status || !strings.Contains(page, c.html) {
				t.Errorf("page: got %d, want %d with %q", answer.StatusCode, c.status, c.html)
			}
			answer, text := ask(t, "POST", url+"/api/lookup", c.body)
			if answer.StatusCode != c.status || !strings.Contains(text, c.json) ||
				!json.Valid([]byte(text)) {
				t.Errorf("JSON: got %d %s, want %d with %s", answer.StatusCode, text, c.status,
					c.json)
			}
			if c.asked == "" && len(source.asked) > 0 || c.asked != "" &&
				(len(source.asked) != 2 || string(source.asked[0]) != c.asked) {
				t.Errorf("the store was asked for %q", source.asked)
			}
		})
	}
}

// An ID in an address would get into logs and histories.
func TestAnIDInTheAddressIsNotLookedUp(t *testing.T) {
	source := &process{}
	o := options()
	o.Source = source
	answer, _ := ask(t, "POST", start(t, o)+"/api/lookup?id=a", "topic=orders")
	if answer.StatusCode != http.StatusBadRequest || len(source.asked) > 0 {
		t.Errorf("got %d, asked %q", answer.StatusCode, source.asked)
	}
}

func TestALookUpThatFailsSaysWhy(t *testing.T) {
	o := options()
	o.Source = &process{err: errors.New("look up an id: cassandra: no hosts")}
	answer, text := ask(t, "POST", start(t, o)+"/api/lookup", "id=a")
	if answer.StatusCode != http.StatusServiceUnavailable ||
		text != "{\"error\":\"look up an id: cassandra: no hosts\"}\n" {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
}

func TestFewLookUpsAtATime(t *testing.T) {
	source := &process{hold: make(chan struct{})}
	o := options()
	o.Source = source
	url := start(t, o) + "/api/lookup"
	statuses := make(chan int, 5)
	for range cap(statuses) {
		go func() {
			answer, _ := ask(t, "POST", url, "id=a")
			statuses <- answer.StatusCode
		}()
	}
	if got := <-statuses; got != http.StatusTooManyRequests {
		t.Errorf("the fifth: got %d", got)
	}
	close(source.hold)
	for range 4 {
		if got := <-statuses; got != http.StatusOK {
			t.Errorf("one of four: got %d", got)
		}
	}
}

func TestLookUpsCanBeOff(t *testing.T) {
	o := options()
	o.Lookup = false
	url := start(t, o)
	if _, page := get(t, url+"/"); strings.Contains(page, "<form") ||
		!strings.Contains(page, "Configuration") {
		t.Error("the page has a form, or is not whole")
	}
	for _, path := range []string{"/lookup", "/api/lookup"} {
		if answer, _ := ask(t, "POST", url+path, "id=a"); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d", path, answer.StatusCode)
		}
	}
}

// Whoever looks, and however many: the source is asked by the clock alone.
func TestALookAtThePageCostsNothing(t *testing.T) {
	source := &process{}
	o := options()
	o.Source, o.Every = source, time.Hour
	url := start(t, o)
	for range 20 {
		get(t, url+"/")
		get(t, url+"/api/status")
	}
	if source.snapshots != 1 { // when it starts
		t.Errorf("%d snapshots", source.snapshots)
	}
}

func TestTheStatusFollowsTheProcess(t *testing.T) {
	o := options()
	o.Every = 5 * time.Millisecond
	url := start(t, o)
	total := func() float64 {
		var status struct {
			State  string
			Totals struct {
				Records struct{ Total, Per_second float64 }
			}
		}
		_, text := get(t, url+"/api/status")
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			t.Fatal(err)
		}
		return status.Totals.Records.Total
	}
	first := total()
	testkit.Eventually(t, time.Minute, "a larger total", func() bool { return total() > first })
}

var _ server.Source = (*process)(nil)

// A reload of the configuration changes the pipelines and the checks of a running server.
func TestPipelinesMayComeAndGo(t *testing.T) {
	o := options()
	source, checks := &changing{process: &process{}}, atomic.Pointer[[]server.Check]{}
	checks.Store(&[]server.Check{})
	o.Source, o.Checks, o.Every = source, func() []server.Check { return *checks.Load() },
		10*time.Millisecond
	url := start(t, o)
	if _, body := ask(t, "POST", url+"/api/lookup", "topic=refunds&id=a"); !strings.Contains(body,
		"topic must be orders") {
		t.Errorf("refunds is known: %s", body)
	}
	source.more.Store(true)
	checks.Store(&[]server.Check{{Name: "topic refunds", Func: func(context.Context) error {
		return errors.New("joining")
	}}})
	testkit.Eventually(t, 30*time.Second, "the new pipeline in the status", func() bool {
		_, body := get(t, url+"/api/status")
		return strings.Contains(body, `"input":"refunds"`)
	})
	if answer, body := ask(
		t, "POST", url+"/api/lookup", "topic=refunds&id=a",
	); answer.StatusCode != http.StatusOK {
		t.Errorf("look up on refunds: %s", body)
	}
	testkit.Eventually(t, 30*time.Second, "the new pipeline in /readyz", func() bool {
		code, body := get(t, url+"/readyz")
		return code == http.StatusServiceUnavailable && body == "topic refunds: joining\n"
	})
}

// changing is a process that gets a second pipeline.
type changing struct {
	*process
	more atomic.Bool
}

func (c *changing) Snapshot() server.Snapshot {
	snap := c.process.Snapshot()
	if c.more.Load() {
		snap.Pipelines = append(snap.Pipelines, server.Pipeline{Input: "refunds"})
	}
	return snap
}
