// Package browser looks at pages in a real Chromium, for tests.
package browser

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Browser is one tab. It also hears what the pages complain about, and what they ask for.
type Browser struct {
	Context context.Context

	mu         sync.Mutex
	complaints []string
	asked      []string
}

// stepTimeout bounds what a test asks for at once. A browser on a busy machine is slow.
const stepTimeout = 90 * time.Second

// Start runs the browser until the test ends. It needs Chromium.
func Start(t *testing.T) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is not for -short")
	}
	path := testkit.Program(t, "chromium", "chromium")
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		options(path, t.TempDir())...)
	ctx, closeTab := chromedp.NewContext(allocator)
	b := &Browser{Context: ctx}
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
	b.enable(t)
	return b
}

func options(path, directory string) []chromedp.ExecAllocatorOption {
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path),
		chromedp.UserDataDir(directory)}
	for _, flag := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
		"disable-background-networking", "disable-component-update", "disable-sync",
		"disable-dev-shm-usage",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	return options
}

// enable has the browser tell of requests and complaints.
func (b *Browser) enable(t *testing.T) {
	t.Helper()
	if _, err := chromedp.Call(b.Context, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.Context, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
}

func (b *Browser) hear(event any) {
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
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text,
			e.Entry.URL))
	}
}

// Complaints are the pages' errors, exceptions and lines on the console so far.
func (b *Browser) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.complaints)
}

// Asked are the addresses that the pages asked for; none means that the browser was not heard.
func (b *Browser) Asked(t *testing.T) []string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) == 0 {
		t.Error("no request was seen: the test hears nothing")
	}
	return slices.Clone(b.asked)
}

// Do takes steps one after the other.
func (b *Browser) Do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, stepTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// Open goes to a page and waits for its heading.
func (b *Browser) Open(t *testing.T, url string) {
	t.Helper()
	b.Do(t, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("h1")))
}

// Text is what a reader sees of an element.
func (b *Browser) Text(t *testing.T, selector string) string {
	t.Helper()
	return Evaluate[string](t, b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// Evaluate returns the value of an expression in JavaScript.
func Evaluate[T any](t *testing.T, b *Browser, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, stepTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Picture is what a reader sees at once, as PNG.
func (b *Browser) Picture(t *testing.T) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, stepTimeout)
	defer cancel()
	taken, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err != nil {
		t.Fatal(err)
	}
	return taken.Data
}
