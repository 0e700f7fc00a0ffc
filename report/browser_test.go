package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// The page in a real Chromium: it loads nothing, fits on a phone, and is readable in light and dark.
func TestInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser is not for -short")
	}
	b := startBrowser(t)
	name := filepath.Join(t.TempDir(), "report.html")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := hostile().build(t, func(o *Options) { o.Header = "producer" }).WriteHTML(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	url := "file://" + name
	t.Run("a phone has nothing to scroll sideways", func(t *testing.T) { b.phone(t, url) })
	t.Run("dark and light", func(t *testing.T) { b.colours(t, url) })
	t.Run("names", func(t *testing.T) { b.names(t, url) })
	b.checkCalm(t, url)
}

// browser hears what the page complains about, and what it asks for.
type browser struct {
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	asked      []string
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
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
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

func (b *browser) checkCalm(t *testing.T, url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		t.Errorf("the page complains: %s", complaint)
	}
	if len(b.asked) == 0 {
		t.Error("no request was seen: the test hears nothing")
	}
	for _, asked := range b.asked {
		if asked != url {
			t.Errorf("the page asks for %s", asked)
		}
	}
}

func (b *browser) open(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 90*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("h1"))); err != nil {
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

func (b *browser) phone(t *testing.T, url string) {
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(360, 740)); err != nil {
		t.Fatal(err)
	}
	b.open(t, url)
	const wide = `[...document.querySelectorAll('body *')].filter((e) => !e.closest('svg') && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80)).join('\n')`
	if got := evaluate[string](t, b, wide); got != "" {
		t.Errorf("wider than the screen:\n%s", got)
	}
	if evaluate[bool](t, b, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page scrolls sideways")
	}
}

// contrast is the lowest contrast of a text with what lies behind it, by WCAG; 4.5 is enough, and 3
// for large text.
const contrast = `(() => {
const rgb = (c) => c.match(/[\d.]+/g).map(Number);
const light = (c) => { const [r, g, b] = rgb(c).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] !== 0) return c; } return 'rgb(255, 255, 255)'; };
let least = 21;
for (const e of document.querySelectorAll('body *')) {
	if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest('svg')) continue;
	const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
	const large = parseFloat(getComputedStyle(e).fontSize) >= 24 ? 1.5 : 1;
	least = Math.min(least, large * (a + 0.05) / (b + 0.05));
}
return least; })()`

func (b *browser) colours(t *testing.T, url string) {
	pages := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		b.open(t, url)
		pages[scheme] = evaluate[string](t, b, "getComputedStyle(document.body).backgroundColor")
		if got := evaluate[float64](t, b, contrast); got < 4.5 {
			t.Errorf("%s: a text has a contrast of %.2f, less than 4.5", scheme, got)
		}
	}
	if pages["light"] == pages["dark"] {
		t.Errorf("light and dark are both %s", pages["light"])
	}
}

// Whoever cannot see the page hears what each part is; and what stands in an ID is text.
func (b *browser) names(t *testing.T, url string) {
	b.open(t, url)
	const nameless = `[...document.querySelectorAll('th')].filter((h) => !h.scope).length +
		[...document.querySelectorAll('section')].filter((e) => !e.ariaLabel && !document.getElementById(e.getAttribute('aria-labelledby'))).length +
		[...document.querySelectorAll('.plot svg')].filter((e) => e.getAttribute('role') !== 'img' || !e.ariaLabel).length`
	if got := evaluate[int](t, b, nameless); got != 0 {
		t.Errorf("%d headings, sections or charts have no name", got)
	}
	if got := evaluate[int](t, b, `document.querySelectorAll('script, img, iframe, link').length`); got != 0 {
		t.Errorf("%d elements stand in the page that the template does not have", got)
	}
	if got := evaluate[string](t, b, `document.querySelector('.id').innerText`); got != evil {
		t.Errorf("the first repeated ID is shown as %q", got)
	}
}
