package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/browser"
)

// The page in a real Chromium: it loads nothing, fits on a phone, and is readable in light and
// dark.
func TestInABrowser(t *testing.T) {
	b := browser.Start(t)
	name := filepath.Join(t.TempDir(), "report.html")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := hostile().build(t, func(o *Options) {
		o.Header = "producer"
	}).WriteHTML(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	url := "file://" + name
	t.Run("a phone has nothing to scroll sideways", func(t *testing.T) {
		b.CheckPhone(t, func() { b.Open(t, url) })
	})
	t.Run("dark and light", func(t *testing.T) { b.CheckColours(t, func() { b.Open(t, url) }) })
	t.Run("names", func(t *testing.T) { checkNames(t, b, url) })
	checkCalm(t, b, url)
}

// checkCalm sees to it that the page asked for nothing but itself, and complained about nothing.
func checkCalm(t *testing.T, b *browser.Browser, url string) {
	for _, complaint := range b.Complaints() {
		t.Errorf("the page complains: %s", complaint)
	}
	for _, asked := range b.Asked(t) {
		if asked != url {
			t.Errorf("the page asks for %s", asked)
		}
	}
}

// checkNames: a reader who cannot see the page hears what each part is; and what stands in an ID is
// text.
func checkNames(t *testing.T, b *browser.Browser, url string) {
	b.Open(t, url)
	const nameless = `[...document.querySelectorAll('th')].filter((h) => !h.scope).length +
		[...document.querySelectorAll('section')].filter((e) => !e.ariaLabel && !document.getElementById(e.getAttribute('aria-labelledby'))).length +
		[...document.querySelectorAll('.plot svg')].filter((e) => e.getAttribute('role') !== 'img' || !e.ariaLabel).length`
	if got := browser.Evaluate[int](t, b, nameless); got != 0 {
		t.Errorf("%d headings, sections or charts have no name", got)
	}
	if got := browser.Evaluate[int](
		t, b, `document.querySelectorAll('script, img, iframe, link').length`,
	); got != 0 {
		t.Errorf("%d elements stand in the page that the template does not have", got)
	}
	if got := browser.Evaluate[string](
		t, b, `document.querySelector('.id').innerText`,
	); got != evil {
		t.Errorf("the first repeated ID is shown as %q", got)
	}
}
