package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Drawings may have parts beyond their edge that nobody sees.
const wide = `[...document.querySelectorAll('body *')].filter((e) => !e.parentElement.closest('svg') && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80)).join('\n')`

// CheckPhone opens a page on a small screen, where nothing may have to be scrolled sideways.
func (b *Browser) CheckPhone(t *testing.T, open func()) {
	t.Helper()
	b.Do(t, chromedp.EmulateViewport(360, 740))
	defer b.Do(t, chromedp.EmulateViewport(1280, 900))
	open()
	if got := Evaluate[string](t, b, wide); got != "" {
		t.Errorf("wider than the screen:\n%s", got)
	}
	if Evaluate[bool](t, b, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page scrolls sideways")
	}
}

// contrast is the lowest contrast of a text with what lies behind it, by WCAG 2.1 (1.4.3): 4.5 is
// enough, and 3 for large text.
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

// CheckColours opens a page as someone sees it who prefers light, and as someone who prefers dark.
// Both must be readable, and differ.
func (b *Browser) CheckColours(t *testing.T, open func()) {
	t.Helper()
	pages := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		open()
		pages[scheme] = Evaluate[string](t, b, "getComputedStyle(document.body).backgroundColor")
		if got := Evaluate[float64](t, b, contrast); got < 4.5 {
			t.Errorf("%s: a text has a contrast of %.2f, less than 4.5", scheme, got)
		}
	}
	if pages["light"] == pages["dark"] {
		t.Errorf("light and dark are both %s", pages["light"])
	}
}
