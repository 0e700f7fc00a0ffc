package trouble

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is one for lanes, and what it has logged.
type desk struct {
	*Desk
	log *testkit.Printed
}

func newDesk(well func(int) (time.Time, bool)) desk {
	log := &testkit.Printed{}
	leaveTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return desk{New(Options{Begins: "failed", Over: "go on", Who: "lane", Well: well,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: leaveTime}))},
	), log}
}

// says compares the lines, and takes them away.
func (d desk) says(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(d.log.String()) {
		got = append(got, strings.TrimSpace(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func refused(port int) error { return fmt.Errorf("dial one:%d: refused", port) }

func TestManyThatMeetOneCauseAreOneLineAndTheEndIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil)
		for lane := range 30 {
			d.Met(lane, refused(9000+lane), "hint", "wait")
			d.Met(lane, refused(9000+lane), "hint", "wait")
		}
		time.Sleep(5 * time.Minute) // of the bubble, here and below
		for lane := range 30 {
			d.Met(lane, refused(1))
			d.Over(lane)
			d.Over(lane)
			time.Sleep(time.Second)
		}
		d.says(t,
			`level=WARN msg=failed lanes=30 error="dial one:9029: refused" hint=wait`,
			`level=INFO msg="go on" lanes=30 after=5m29s`)
	})
}

func TestCausesThatDifferHaveLinesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil)
		d.Met(0, refused(9092))
		d.Met(1, refused(9092))
		d.Met(2, errors.New("not allowed"))
		d.Met(3, errors.New("member a7f3-19 is unknown"))
		d.Met(4, errors.New("member 0b-c1d2 is unknown"))
		time.Sleep(settling)
		d.Met(1, errors.New("EOF"))
		d.Over(0)
		d.Over(2)
		time.Sleep(settling)
		d.Over(1)
		d.Over(3)
		d.Over(4)
		d.says(t,
			`level=WARN msg=failed lanes=2 error="dial one:9092: refused"`,
			`level=WARN msg=failed lane=2 error="not allowed"`,
			`level=WARN msg=failed lanes=2 error="member 0b-c1d2 is unknown"`,
			`level=WARN msg=failed lane=1 error=EOF`,
			`level=INFO msg="go on" lanes=5 after=2s`)
	})
}

func TestWhatIsOverSoonIsToldToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil)
		for range 2 {
			d.Met(3, refused(9092))
			time.Sleep(200 * time.Millisecond)
			d.Over(3)
		}
		time.Sleep(time.Hour)
		d.says(t,
			`level=WARN msg=failed lane=3 error="dial one:9092: refused"`,
			`level=INFO msg="go on" lane=3 after=200ms`,
			`level=WARN msg=failed lane=3 error="dial one:9092: refused"`,
			`level=INFO msg="go on" lane=3 after=200ms`)
	})
}

func TestOfWhoIsGoneNothingIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil)
		d.Met(0, refused(9092))
		d.Gone(0)
		d.Gone(0)
		d.Met(1, refused(9092))
		d.Met(2, refused(9092))
		d.Gone(1)
		d.Over(2)
		time.Sleep(time.Hour)
		d.says(t,
			`level=WARN msg=failed lane=0 error="dial one:9092: refused"`,
			`level=WARN msg=failed lanes=2 error="dial one:9092: refused"`,
			`level=INFO msg="go on" lane=2 after=0s`)
	})
}

func TestALongTroubleIsToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil)
		for range 25 * 60 { // every second
			d.Met(0, refused(9092))
			time.Sleep(time.Second)
		}
		d.Gone(0)
		d.says(t, slicesOf(3, `level=WARN msg=failed lane=0 error="dial one:9092: refused"`)...)
	})
}

func TestACauseThatSpreadsIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil)
		for second := range 120 {
			for lane := range min(second/5+1, 6) { // one more every five seconds
				d.Met(lane, refused(9092))
			}
			time.Sleep(time.Second)
		}
		for lane := range 6 {
			d.Over(lane)
		}
		d.says(t,
			`level=WARN msg=failed lane=0 error="dial one:9092: refused"`,
			`level=WARN msg=failed lanes=6 error="dial one:9092: refused"`,
			`level=INFO msg="go on" lanes=6 after=2m0s`)
	})
}

func slicesOf(n int, line string) []string {
	return strings.Split(strings.TrimSuffix(strings.Repeat(line+"\n", n), "\n"), "\n")
}

// Lanes that have nothing to do never say that they are well.
func TestThoseWhoAreWellAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var healed time.Time
		d := newDesk(func(int) (time.Time, bool) {
			return healed, !healed.IsZero() && time.Since(healed) >= 30*time.Second
		})
		d.Met(0, refused(9092))
		d.Met(1, refused(9092))
		time.Sleep(90 * time.Second)
		healed = time.Now()
		time.Sleep(time.Hour)
		d.says(t,
			`level=WARN msg=failed lanes=2 error="dial one:9092: refused"`,
			`level=INFO msg="go on" lanes=2 after=1m30s`)
	})
}

func TestTheCausesThatAreToldAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil)
		for n := range 100 {
			d.Met(0, errors.New(strings.Repeat("x", n)))
			time.Sleep(settling)
		}
		d.Over(0)
		if n := strings.Count(d.log.String(), "\n"); n != maxCauses+1 {
			t.Errorf("%d lines", n)
		}
	})
}
