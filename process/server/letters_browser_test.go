package server

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/browser"
)

// sendLetter finds letters and sends one, by the buttons. What a record says stays text.
func (b pages) sendLetter(t *testing.T) {
	letters, base := lettersServer(t, true, func(*Options) {})
	t.Cleanup(func() { b.Do(t, chromedp.Navigate("about:blank")) })
	find := func() {
		b.Open(t, base+"/letters")
		b.Do(t, chromedp.SetValue(chromedp.CSS("#topic"), "orders"),
			chromedp.Click(chromedp.CSS("#ask button")),
			chromedp.WaitVisible(chromedp.CSS(".letter")))
		testkit.Eventually(t, time.Minute, "the page with its style", func() bool {
			return browser.Evaluate[string](t, b.Browser, "document.readyState") == "complete"
		})
	}
	find()
	b.checkStructure(t)
	b.Do(t, chromedp.Click(chromedp.CSS(".letter summary")))
	if got := b.Text(t, ".letter pre"); got != "<script>alert(1)</script>" {
		t.Errorf("the value is shown as %q", got)
	}
	if path := os.Getenv("KDEDUP_PICTURE_OF_LETTERS"); path != "" {
		if err := os.WriteFile(path, b.Picture(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const buttons = `document.querySelectorAll('.letter button').length`
	if n := browser.Evaluate[int](t, b.Browser, buttons); n != 1 {
		t.Errorf("there are %d buttons: what is no letter, or has no ID, cannot be sent, and a "+
			"conflict not to the input", n)
	}
	b.Do(t, chromedp.Click(chromedp.CSS(".letter button")),
		chromedp.WaitVisible(chromedp.CSS(".said")))
	if want := []string{"find orders", "redrive orders", "find orders"}; !slices.Equal(
		letters.asked, want) {
		t.Errorf("asked for %q, want %q", letters.asked, want)
	}
	if got := b.Text(t, ".said"); !strings.Contains(got, "sent") {
		t.Errorf("the page says %q", got)
	}
	if n := browser.Evaluate[int](t, b.Browser, buttons); n != 0 {
		t.Errorf("what was sent has %d buttons", n)
	}
	b.CheckPhone(t, find)
	b.CheckColours(t, find)
}
