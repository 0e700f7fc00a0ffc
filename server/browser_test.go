package server

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/internal/testkit"
)

// These tests look at the page in a real Chromium, of which there is one for all of them.
func TestInABrowser(t *testing.T) {
	b := startBrowser(t)
	t.Run("the script shows what the server renders", b.scriptEqualsServer)
	t.Run("numbers move", b.numbersMove)
	t.Run("look up an ID", b.lookUp)
	t.Run("look up an ID without JavaScript", b.lookUpWithoutScript)
	t.Run("a server that is gone", b.serverGone)
	t.Run("a phone has nothing to scroll sideways", b.phone)
	t.Run("dark and light", b.colours)
	t.Run("a look at it with the keyboard", b.keyboard)
	b.checkCalm(t)
}

// browser also hears what the pages complain about, and what they ask for.
type browser struct {
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	asked      []string
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is not for -short")
	}
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("SKIPPED, not tested: %v", err)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir())}
	for _, flag := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
		"disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	b := &browser{ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("close the browser: %v", err)
		}
		closeTab()
		stop()
	})
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); return err },
	} {
		if err := enable(); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

// checkCalm sees to it that no page complained, but about the server that was taken away, and that all
// requests stayed on this machine.
func (b *browser) checkCalm(t *testing.T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		if !strings.Contains(complaint, "ERR_CONNECTION_REFUSED") {
			t.Errorf("the page complains: %s", complaint)
		}
	}
	if len(b.asked) == 0 {
		t.Error("no request was seen: the test hears nothing")
	}
	for _, asked := range b.asked {
		if u, err := url.Parse(asked); err != nil || u.Hostname() != "127.0.0.1" || u.RawQuery != "" {
			t.Errorf("the page asks for %s", asked)
		}
	}
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 90*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func evaluate[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 90*time.Second)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text is what a reader sees of an element.
func (b *browser) text(t *testing.T, selector string) string {
	t.Helper()
	return evaluate[string](t, b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// answering is a script that also answers look-ups.
type answering struct {
	script
	asked chan string
}

func (a *answering) LookUp(_ context.Context, topic string, id []byte) (Finding, error) {
	a.asked <- string(id)
	return Finding{Rows: []Row{{"id", string(id)}, {"seen", "yes, in " + topic}}}, nil
}

// serve runs a server whose numbers grow ten times a second.
func serve(t *testing.T) (s *Server, source *answering, stop func()) {
	t.Helper()
	o, _ := scripted(t, 0)
	source = &answering{script: script{step: 1000}, asked: make(chan string, 10)}
	o.Source, o.Every, o.Listen, o.Gatherer = source, 100*time.Millisecond, "127.0.0.1:0", prometheus.NewRegistry()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Cleanup(stop)
	return s, source, stop
}

// whole is the page without the white space between elements.
const whole = `document.body.outerHTML.replace(/>\s+</g, '><').trim()`

// spoil changes all that the script writes, takes rows away and adds some.
const spoil = `
for (const e of document.querySelectorAll('[data-text]')) e.textContent = 'spoilt';
for (const e of document.querySelectorAll('[data-is]')) e.dataset.state = 'spoilt';
for (const e of document.querySelectorAll('[data-hide]')) e.hidden = !e.hidden;
for (const e of document.querySelectorAll('[data-dim]')) e.classList.toggle('zero');
for (const e of document.querySelectorAll('svg path')) e.setAttribute('d', 'M0 0');
for (const e of document.querySelectorAll('svg title')) e.textContent = 'spoilt';
const lists = [...document.querySelectorAll('tbody:has(template)')];
lists.at(0).querySelector('tr').remove();
lists.at(-1).append(lists.at(-1).querySelector('tr').cloneNode(true));
for (const e of document.querySelectorAll('[class=""]')) e.removeAttribute('class');
`

// Server and script write the same page, each by itself. Here the script has to restore what the
// server rendered: every number, colour, row and chart.
func (b *browser) scriptEqualsServer(t *testing.T) {
	o, s := scripted(t, 6)
	o.Gatherer = prometheus.NewRegistry()
	server := httptest.NewServer(protect(o, true, Cleaner(nil), routes(o, s, Cleaner(nil))))
	defer server.Close()
	defer b.do(t, chromedp.Navigate("about:blank"))
	b.do(t, chromedp.Navigate(server.URL))
	rendered := evaluate[string](t, b, whole)
	for _, part := range []string{"13,888", "9,877,777", "blocked", "5.0 MiB", "times since", "one name each", "M145 1.0"} {
		if !strings.Contains(rendered, part) {
			t.Errorf("the page does not show %q", part)
		}
	}
	evaluate[any](t, b, "(() => {"+spoil+"; return true; })()")
	if evaluate[string](t, b, whole) == rendered {
		t.Fatal("nothing was spoilt")
	}
	evaluate[any](t, b, `document.dispatchEvent(new Event('visibilitychange')), true`)
	shown := ""
	defer func() {
		if t.Failed() {
			t.Logf("rendered:\n%s\n\nshown by the script:\n%s", rendered, shown)
		}
	}()
	testkit.Eventually(t, time.Minute, "the page as the server renders it", func() bool {
		shown = strings.ReplaceAll(evaluate[string](t, b, whole), ` class=""`, "")
		return shown == rendered
	})
}

func (b *browser) open(t *testing.T, s *Server) {
	t.Helper()
	b.do(t, chromedp.Navigate(s.URL()), chromedp.WaitVisible(chromedp.CSS("h1")))
	t.Cleanup(func() { b.do(t, chromedp.Navigate("about:blank")) })
}

func (b *browser) numbersMove(t *testing.T) {
	s, _, _ := serve(t)
	b.open(t, s)
	const total, chart = `.rates td:last-child`, `document.querySelector('.tile path.line').getAttribute('d')`
	first, line := b.text(t, total), evaluate[string](t, b, chart)
	testkit.Eventually(t, time.Minute, "another total", func() bool { return b.text(t, total) != first })
	testkit.Eventually(t, time.Minute, "another chart", func() bool { return evaluate[string](t, b, chart) != line })
}

func (b *browser) lookUp(t *testing.T) {
	s, source, _ := serve(t)
	b.open(t, s)
	b.do(t, chromedp.SendKeys(chromedp.CSS("#id"), "a/b?c=ü"), chromedp.Click(chromedp.CSS("form button")))
	testkit.Eventually(t, time.Minute, "the answer", func() bool { return strings.Contains(b.text(t, "#answer"), "yes, in orders") })
	if got := <-source.asked; got != "a/b?c=ü" {
		t.Errorf("asked for %q", got)
	}
	if at := evaluate[string](t, b, "location.href"); at != s.URL() {
		t.Errorf("the page is at %s now", at)
	}
}

func (b *browser) lookUpWithoutScript(t *testing.T) {
	script := func(off bool) {
		if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off}); err != nil {
			t.Fatal(err)
		}
	}
	s, source, _ := serve(t)
	script(true)
	defer script(false)
	b.open(t, s)
	b.do(t, chromedp.SendKeys(chromedp.CSS("#id"), "00ff"), chromedp.Click(chromedp.CSS("#hex")), chromedp.Click(chromedp.CSS("form button")),
		chromedp.WaitVisible(chromedp.CSS("#answer dl")))
	if got := <-source.asked; got != "\x00\xff" {
		t.Errorf("asked for %q", got)
	}
	text, err := chromedp.Run(b.ctx, chromedp.TextContent(chromedp.CSS("#answer")))
	if err != nil || !strings.Contains(text, "yes, in orders") {
		t.Errorf("got %q, %v", text, err)
	}
}

func (b *browser) serverGone(t *testing.T) {
	s, _, stop := serve(t)
	b.open(t, s)
	stop()
	testkit.Eventually(t, time.Minute, "the notice that the numbers are old", func() bool {
		return strings.Contains(b.text(t, "#stale"), "no connection")
	})
}

func (b *browser) phone(t *testing.T) {
	b.do(t, chromedp.EmulateViewport(360, 740))
	defer b.do(t, chromedp.EmulateViewport(1280, 900))
	s, _, _ := serve(t)
	b.open(t, s)
	evaluate[any](t, b, `document.querySelector('details').open = true`)
	const wide = `[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80)).join('\n')`
	if got := evaluate[string](t, b, wide); got != "" {
		t.Errorf("wider than the screen:\n%s", got)
	}
	if got := evaluate[bool](t, b, `document.documentElement.scrollWidth > innerWidth`); got {
		t.Error("the page scrolls sideways")
	}
}

// contrast is the lowest contrast of a text with what lies behind it, by WCAG; 4.5 is enough.
const contrast = `(() => {
const rgb = (c) => c.match(/[\d.]+/g).map(Number);
const light = (c) => { const [r, g, b] = rgb(c).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] !== 0) return c; } return 'rgb(255, 255, 255)'; };
let least = 21;
for (const e of document.querySelectorAll('body *')) {
	if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest('svg')) continue;
	const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
	least = Math.min(least, (a + 0.05) / (b + 0.05));
}
return least; })()`

func (b *browser) colours(t *testing.T) {
	s, _, _ := serve(t)
	pages := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		b.open(t, s)
		pages[scheme] = evaluate[string](t, b, "getComputedStyle(document.body).backgroundColor")
		if got := evaluate[float64](t, b, contrast); got < 4.5 {
			t.Errorf("%s: a text has a contrast of %.2f, less than 4.5", scheme, got)
		}
	}
	if pages["light"] == pages["dark"] {
		t.Errorf("light and dark are both %s", pages["light"])
	}
}

// Whoever cannot use a mouse reaches everything, in an order that makes sense; and every field and
// table says what it is.
func (b *browser) keyboard(t *testing.T) {
	s, _, _ := serve(t)
	b.open(t, s)
	const nameless = `[...document.querySelectorAll('input, select')].filter((e) => e.labels.length === 0).length +
		[...document.querySelectorAll('table')].filter((e) => [...e.querySelectorAll('th')].some((h) => !h.scope)).length +
		[...document.querySelectorAll('section')].filter((e) => !e.ariaLabel && !document.getElementById(e.getAttribute('aria-labelledby'))).length`
	if got := evaluate[int](t, b, nameless); got != 0 {
		t.Errorf("%d fields, tables or sections have no name", got)
	}
	var order []string
	for range 6 {
		b.do(t, chromedp.KeyEvent("\t"))
		order = append(order, evaluate[string](t, b, `document.activeElement.id || document.activeElement.localName`))
	}
	if want := "div div topic id hex button"; strings.Join(order, " ") != want {
		t.Errorf("the tab key leads to %v, want %s", order, want)
	}
	if got := evaluate[string](t, b, `getComputedStyle(document.activeElement).outlineStyle`); got != "solid" {
		t.Errorf("the focus is shown by an outline that is %s", got)
	}
}
