package server

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/browser"
)

// These tests look at the page in a real Chromium, of which there is one for all of them.
func TestInABrowser(t *testing.T) {
	b := pages{browser.Start(t)}
	t.Run("the script shows what the server renders", b.scriptEqualsServer)
	t.Run("numbers move", b.numbersMove)
	t.Run("look up an ID", b.lookUp)
	t.Run("look up an ID without JavaScript", b.lookUpWithoutScript)
	t.Run("a click looks a dropped copy up", b.lookUpDropped)
	t.Run("each of fifty pipelines can be hit", b.fifty)
	t.Run("readers of the screen find their way", b.structure)
	t.Run("of many pipelines the filter keeps what was asked for", b.filter)
	t.Run("a link leads to the details of a pipeline", b.link)
	t.Run("a server that is gone", b.serverGone)
	t.Run("a phone has nothing to scroll sideways", b.phone)
	t.Run("dark and light", b.colours)
	t.Run("a look at it with the keyboard", b.keyboard)
	t.Run("letters are found and sent", b.sendLetter)
	b.checkCalm(t)
}

// pages are the tests of the status page in one browser.
type pages struct{ *browser.Browser }

// checkCalm sees to it that no page complained, but about the server that was taken away, and that
// all requests stayed on this machine.
func (b pages) checkCalm(t *testing.T) {
	for _, complaint := range b.Complaints() {
		if !strings.Contains(complaint, "ERR_CONNECTION_REFUSED") {
			t.Errorf("the page complains: %s", complaint)
		}
	}
	for _, asked := range b.Asked(t) {
		if u, err := url.Parse(asked); err != nil || u.Hostname() != "127.0.0.1" ||
			u.RawQuery != "" {
			t.Errorf("the page asks for %s", asked)
		}
	}
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

func (a *answering) Change(context.Context, Change, string, []byte) (string, error) {
	return "", nil
}

// serve runs a server whose numbers grow ten times a second.
func serve(t *testing.T) (s *Server, source *answering, stop func()) {
	t.Helper()
	o, _ := scripted(t, 0)
	source = &answering{script: script{step: 1000}, asked: make(chan string, 10)}
	o.Source, o.Every, o.Listen, o.Gatherer = source, 100*time.Millisecond, "127.0.0.1:0",
		prometheus.NewRegistry()
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
for (const e of document.querySelectorAll('[data-value]')) e.setAttribute('value', 'spoilt');
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
func (b pages) scriptEqualsServer(t *testing.T) {
	o, s := scripted(t, 6)
	o.Gatherer = prometheus.NewRegistry()
	server := httptest.NewServer(protect(o, true, &prober{checks: o.Checks, clean: Cleaner(nil)},
		routes(o, true, s, Cleaner(nil))))
	defer server.Close()
	defer b.Do(t, chromedp.Navigate("about:blank"))
	b.Do(t, chromedp.Navigate(server.URL))
	rendered := browser.Evaluate[string](t, b.Browser, whole)
	for _, part := range []string{"13,888", "9,877,777", "blocked", "5.0 MiB", "times since",
		"one name each", "M145 1.0", "11 %", "91 s", "00ff", "orders[5] held at offset 7"} {
		if !strings.Contains(rendered, part) {
			t.Errorf("the page does not show %q", part)
		}
	}
	browser.Evaluate[any](t, b.Browser, "(() => {"+spoil+"; return true; })()")
	if browser.Evaluate[string](t, b.Browser, whole) == rendered {
		t.Fatal("nothing was spoilt")
	}
	browser.Evaluate[any](t, b.Browser,
		`document.dispatchEvent(new Event('visibilitychange')), true`)
	shown := ""
	defer func() {
		if t.Failed() {
			t.Logf("rendered:\n%s\n\nshown by the script:\n%s", rendered, shown)
		}
	}()
	testkit.Eventually(t, time.Minute, "the page as the server renders it", func() bool {
		shown = strings.ReplaceAll(browser.Evaluate[string](t, b.Browser, whole), ` class=""`, "")
		return shown == rendered
	})
}

func (b pages) open(t *testing.T, s *Server) {
	t.Helper()
	b.Open(t, s.URL())
	t.Cleanup(func() { b.Do(t, chromedp.Navigate("about:blank")) })
}

func (b pages) numbersMove(t *testing.T) {
	s, _, _ := serve(t)
	b.open(t, s)
	const total, chart = `#store ~ .columns .rates td:last-child`,
		`document.querySelector('.tile path.line').getAttribute('d')`
	first, line := b.Text(t, total), browser.Evaluate[string](t, b.Browser, chart)
	testkit.Eventually(t, time.Minute, "another total", func() bool {
		return b.Text(t, total) != first
	})
	testkit.Eventually(t, time.Minute, "another chart", func() bool {
		return browser.Evaluate[string](t, b.Browser, chart) != line
	})
}

// press clicks an element wherever it is then: a click at a point of a page whose numbers grow may
// meet what has moved there.
func (b pages) press(t *testing.T, selector string) {
	t.Helper()
	browser.Evaluate[any](t, b.Browser,
		fmt.Sprintf("document.querySelector(%q).click(), true", selector))
}

func (b pages) lookUp(t *testing.T) {
	s, source, _ := serve(t)
	b.open(t, s)
	b.Do(t, chromedp.SendKeys(chromedp.CSS("#id"), "a/b?c=ü\r"))
	testkit.Eventually(t, time.Minute, "the answer", func() bool {
		return strings.Contains(b.Text(t, "#answer"), "yes, in orders")
	})
	if got := <-source.asked; got != "a/b?c=ü" {
		t.Errorf("asked for %q", got)
	}
	if at := browser.Evaluate[string](t, b.Browser, "location.href"); at != s.URL() {
		t.Errorf("the page is at %s now", at)
	}
}

func (b pages) lookUpDropped(t *testing.T) {
	s, source, _ := serve(t)
	b.open(t, s)
	b.press(t, ".dropped tr:last-child button")
	testkit.Eventually(t, time.Minute, "the answer", func() bool {
		return strings.Contains(b.Text(t, "#answer"), "yes, in orders")
	})
	if got := <-source.asked; got != "\x00\xff" {
		t.Errorf("asked for %q", got)
	}
	if shown := browser.Evaluate[string](t, b.Browser,
		"document.getElementById('id').value"); shown != "00ff" {
		t.Errorf("the form shows %q", shown)
	}
}

// many is a script of fifty pipelines.
type many struct{ script }

func (m *many) Snapshot() Snapshot {
	snap := m.script.Snapshot()
	one := snap.Pipelines[0]
	snap.Pipelines = nil
	for n := range 50 {
		one.Input = fmt.Sprintf("tenant-%d.orders", n)
		snap.Pipelines = append(snap.Pipelines, one)
	}
	return snap
}

// openFifty shows them on a large screen.
func (b pages) openFifty(t *testing.T, fragment string) {
	t.Helper()
	o, _ := scripted(t, 0)
	source := &many{script{step: 1000}}
	o.Source, o.Every, o.Gatherer = source, 100*time.Millisecond, prometheus.NewRegistry()
	probes := &prober{found: []checkStatus{{Name: StoreCheck, OK: true}}, at: noon}
	sampler := newSampler(o, probes, Cleaner(nil))
	sampler.sample(noon)
	server := httptest.NewServer(protect(o, true, probes, routes(o, true, sampler, Cleaner(nil))))
	t.Cleanup(server.Close)
	b.Do(t, chromedp.EmulateViewport(1920, 1080))
	t.Cleanup(func() {
		b.Do(t, chromedp.Navigate("about:blank"), chromedp.EmulateViewport(1280, 900))
	})
	b.Do(t, chromedp.Navigate(server.URL+fragment))
}

// What is to be hit is 24 pixels high (WCAG 2.2, 2.5.8), and not more where there are many.
func (b pages) fifty(t *testing.T) {
	b.openFifty(t, "")
	for edge, want := range map[string]float64{"min": 24, "max": 25} {
		got := browser.Evaluate[float64](t, b.Browser, "Math."+edge+
			"(...[...document.querySelectorAll('summary.line')].map(e => "+
			"e.getBoundingClientRect().height))")
		if edge == "min" && got < want || edge == "max" && got > want {
			t.Errorf("the lines of pipelines have %s %v pixels, want %v", edge, got, want)
		}
	}
}

// These are the rules of axe that the page has broken: definition-list, dlitem, landmark-unique.
func (b pages) structure(t *testing.T) {
	s, _, stop := serve(t)
	defer stop()
	b.open(t, s)
	b.checkStructure(t)
}

func (b pages) checkStructure(t *testing.T) {
	t.Helper()
	const strange = `[...document.querySelectorAll('dl > *')].filter(e => ` +
		`!['DT', 'DD', 'DIV', 'TEMPLATE'].includes(e.tagName) || e.tagName === 'DIV' && ` +
		`[...e.children].some(c => !['DT', 'DD'].includes(c.tagName))).map(e => e.outerHTML)`
	if found := browser.Evaluate[[]string](t, b.Browser, strange); len(found) > 0 {
		t.Errorf("lists of terms hold something else: %q", found)
	}
	const labels = `[...document.querySelectorAll('section, [role=region]')].map(e => ` +
		`e.getAttribute('aria-label') ?? ` +
		`document.getElementById(e.getAttribute('aria-labelledby'))?.textContent ?? '').map(` +
		`text => text.trim())`
	seen := make(map[string]bool)
	for _, label := range browser.Evaluate[[]string](t, b.Browser, labels) {
		if label == "" || seen[label] {
			t.Errorf("two regions, or one without a name, are called %q", label)
		}
		seen[label] = true
	}
}

const shownPipelines = `[...document.querySelectorAll('.pipeline:not([hidden]) b')]` +
	`.map((b) => b.textContent).join()`

func (b pages) filter(t *testing.T) {
	b.openFifty(t, "")
	b.Do(t, chromedp.SendKeys(chromedp.CSS("#filter"), "TENANT-4 held"))
	if got := b.Text(t, "#filtered"); got != "11 shown" { // 4, and 40 to 49
		t.Errorf("it says %q", got)
	}
	shown := browser.Evaluate[string](t, b.Browser, shownPipelines)
	if strings.Count(shown, "tenant-4") != 11 {
		t.Errorf("the page shows %s", shown)
	}
	const asked = `performance.getEntriesByType('resource')` +
		`.filter((e) => e.name.endsWith('status')).length`
	testkit.Eventually(t, time.Minute, "newer numbers", func() bool {
		return browser.Evaluate[int](t, b.Browser, asked) > 1
	})
	if got := browser.Evaluate[string](t, b.Browser, shownPipelines); got != shown {
		t.Errorf("with newer numbers the page shows %s", got)
	}
}

func (b pages) link(t *testing.T) {
	b.openFifty(t, "#pipeline-tenant-30.orders")
	const open = `[...document.querySelectorAll('.pipeline[open] > summary b')]` +
		`.map((b) => b.textContent).join()`
	if got := browser.Evaluate[string](
		t, b.Browser, open,
	); !strings.HasPrefix(got, "tenant-30.orders") || strings.Contains(got, ",") {
		t.Errorf("open are the details of %q", got)
	}
}

func (b pages) lookUpWithoutScript(t *testing.T) {
	script := func(off bool) {
		if _, err := chromedp.Call(
			b.Context, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: off},
		); err != nil {
			t.Fatal(err)
		}
	}
	s, source, _ := serve(t)
	script(true)
	defer script(false)
	b.open(t, s)
	b.Do(t, chromedp.SendKeys(chromedp.CSS("#id"), "00ff"), chromedp.Click(chromedp.CSS("#hex")),
		chromedp.Click(chromedp.CSS("#ask button")),
		chromedp.WaitVisible(chromedp.CSS("#answer dl")))
	if got := <-source.asked; got != "\x00\xff" {
		t.Errorf("asked for %q", got)
	}
	text, err := chromedp.Run(b.Context, chromedp.TextContent(chromedp.CSS("#answer")))
	if err != nil || !strings.Contains(text, "yes, in orders") {
		t.Errorf("got %q, %v", text, err)
	}
}

func (b pages) serverGone(t *testing.T) {
	s, _, stop := serve(t)
	b.open(t, s)
	stop()
	testkit.Eventually(t, time.Minute, "the notice that the numbers are old", func() bool {
		return strings.Contains(b.Text(t, "#stale"), "no connection")
	})
}

func (b pages) phone(t *testing.T) {
	s, _, _ := serve(t)
	b.CheckPhone(t, func() {
		b.open(t, s)
		browser.Evaluate[any](t, b.Browser, `document.querySelectorAll('details').forEach((d) => { d.open = true; })`)
	})
}

func (b pages) colours(t *testing.T) {
	s, _, _ := serve(t)
	b.CheckColours(t, func() { b.open(t, s) })
}

// Whoever cannot use a mouse reaches everything, in an order that makes sense; and every field and
// table says what it is.
func (b pages) keyboard(t *testing.T) {
	s, _, _ := serve(t)
	b.open(t, s)
	const nameless = `[...document.querySelectorAll('input:not([type="hidden"]), select')].filter((e) => e.labels.length === 0).length +
		[...document.querySelectorAll('table')].filter((e) => [...e.querySelectorAll('th')].some((h) => !h.scope)).length +
		[...document.querySelectorAll('section')].filter((e) => !e.ariaLabel && !document.getElementById(e.getAttribute('aria-labelledby'))).length`
	if got := browser.Evaluate[int](t, b.Browser, nameless); got != 0 {
		t.Errorf("%d fields, tables or sections have no name", got)
	}
	var order []string
	for range 12 {
		b.Do(t, chromedp.KeyEvent("\t"))
		order = append(order, browser.Evaluate[string](t, b.Browser,
			`document.activeElement.id || document.activeElement.localName`))
	}
	if want := "summary summary div button button div div summary topic id hex button"; strings.Join(
		order, " ") != want {
		t.Errorf("the tab key leads to %v, want %s", order, want)
	}
	if got := browser.Evaluate[string](
		t, b.Browser, `getComputedStyle(document.activeElement).outlineStyle`,
	); got != "solid" {
		t.Errorf("the focus is shown by an outline that is %s", got)
	}
}
