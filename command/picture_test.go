package command

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/browser"
)

var update = flag.Bool("update", false, "write the pictures of the documents again")

// The README shows the real page: -update takes the picture again.
func TestThePictureOfTheStatusPageIsOfARunningProcess(t *testing.T) {
	b := browser.Start(t)
	p := runDemo(t, demoKafka(t), func(*config.Config) {})
	enough := 20
	if *update {
		enough = 2000 // half a minute's
	}
	testkit.Eventually(t, 2*time.Minute, "duplicates", func() bool {
		return outcomes(p)["duplicate"] > enough
	})
	b.Do(t, chromedp.EmulateViewport(1100, 900))
	b.Open(t, p.URL())
	testkit.Eventually(t, time.Minute, "rates on the page", func() bool {
		return browser.Evaluate[bool](t, b, `document.querySelectorAll('svg path').length > 0`)
	})
	taken := b.Picture(t)
	picture, err := png.Decode(bytes.NewReader(taken))
	if err != nil || picture.Bounds().Dx() != 1100 {
		t.Fatalf("%v: the picture is no page", err)
	}
	if *update {
		if err := os.WriteFile("../docs/images/status-page.png", taken, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if complaints := b.Complaints(); len(complaints) > 0 {
		t.Errorf("the page complains: %v", complaints)
	}
}
