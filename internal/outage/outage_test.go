package outage

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lanes report to a log of their own, and the test reads what it has written.
type lanes struct {
	*Log
	healthy func() (time.Time, bool)
	made    map[string]*Reporter
	written *testkit.Printed
}

func newLanes(healthy func() (time.Time, bool)) lanes {
	written := &testkit.Printed{}
	leaveTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	text := slog.NewTextHandler(written, &slog.HandlerOptions{ReplaceAttr: leaveTime})
	return lanes{New(Options{Message: "failed", Recovered: "go on", Lanes: true,
		Logger: slog.New(text)}), healthy, make(map[string]*Reporter), written}
}

func (d lanes) of(topic string, n int) *Reporter {
	name := fmt.Sprint(topic, n)
	if d.made[name] == nil {
		d.made[name] = d.Reporter(topic, n, d.healthy)
	}
	return d.made[name]
}

// says compares the lines, and takes them away.
func (d lanes) says(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(d.written.String()) {
		got = append(got, strings.TrimSpace(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func refused(port int) error { return fmt.Errorf("dial one:%d: refused", port) }

func TestManyThatMeetOneCauseAreOneLineAndTheEndIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLanes(nil)
		for lane := range 30 {
			d.of("", lane).Report(refused(9000+lane), "hint", "wait")
			d.of("", lane).Report(refused(9000+lane), "hint", "wait")
		}
		time.Sleep(5 * time.Minute) // of the bubble, here and below
		for lane := range 30 {
			d.of("", lane).Report(refused(1))
			d.of("", lane).Recovered()
			d.of("", lane).Recovered()
			time.Sleep(time.Second)
		}
		d.says(t,
			`level=WARN msg=failed lanes=30 error="dial one:9000: refused" hint=wait`,
			`level=INFO msg="go on" lanes=30 after=5m29s`)
	})
}

func TestCausesThatDifferHaveLinesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLanes(nil)
		d.of("", 0).Report(refused(9092))
		d.of("", 1).Report(refused(9092))
		d.of("", 2).Report(errors.New("not allowed"))
		d.of("", 3).Report(errors.New("member a7f3-19 is unknown"))
		d.of("", 4).Report(errors.New("member 0b-c1d2 is unknown"))
		time.Sleep(settling)
		d.of("", 1).Report(errors.New("EOF"))
		d.of("", 0).Recovered()
		d.of("", 2).Recovered()
		time.Sleep(settling)
		d.of("", 1).Recovered()
		d.of("", 3).Recovered()
		d.of("", 4).Recovered()
		d.says(t,
			`level=WARN msg=failed lanes=2 error="dial one:9092: refused"`,
			`level=WARN msg=failed lane=2 error="not allowed"`,
			`level=WARN msg=failed lanes=2 error="member a7f3-19 is unknown"`,
			`level=WARN msg=failed lane=1 error=EOF`,
			`level=INFO msg="go on" lanes=5 after=2s`)
	})
}

func TestWhatIsOverSoonIsToldToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLanes(nil)
		for range 2 {
			d.of("", 3).Report(refused(9092))
			time.Sleep(200 * time.Millisecond)
			d.of("", 3).Recovered()
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
		d := newLanes(nil)
		d.of("", 0).Report(refused(9092))
		d.of("", 0).Forget()
		d.of("", 0).Forget()
		d.of("", 1).Report(refused(9092))
		d.of("", 2).Report(refused(9092))
		d.of("", 1).Forget()
		d.of("", 2).Recovered()
		time.Sleep(time.Hour)
		d.says(t,
			`level=WARN msg=failed lane=0 error="dial one:9092: refused"`,
			`level=WARN msg=failed lanes=2 error="dial one:9092: refused"`,
			`level=INFO msg="go on" lane=2 after=0s`)
	})
}

func TestALongTroubleIsToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLanes(nil)
		for range 25 * 60 { // every second
			d.of("", 0).Report(refused(9092))
			time.Sleep(time.Second)
		}
		d.of("", 0).Forget()
		d.says(t, slicesOf(3, `level=WARN msg=failed lane=0 error="dial one:9092: refused"`)...)
	})
}

func TestACauseThatSpreadsIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLanes(nil)
		for second := range 120 {
			for lane := range min(second/5+1, 6) { // one more every five seconds
				d.of("", lane).Report(refused(9092))
			}
			time.Sleep(time.Second)
		}
		for lane := range 6 {
			d.of("", lane).Recovered()
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
		d := newLanes(func() (time.Time, bool) {
			return healed, !healed.IsZero() && time.Since(healed) >= 30*time.Second
		})
		d.of("", 0).Report(refused(9092))
		d.of("", 1).Report(refused(9092))
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
		d := newLanes(nil)
		for n := range 100 {
			d.of("", 0).Report(errors.New(strings.Repeat("x", n)))
			time.Sleep(settling)
		}
		d.of("", 0).Recovered()
		if n := strings.Count(d.written.String(), "\n"); n != maxCauses+1 {
			t.Errorf("%d lines", n)
		}
	})
}

// One broker that is down is met by every pipeline, each while it does something else.
func TestOneCauseOfManyPipelinesIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLanes(nil)
		down := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7),
			Port: 9092}, Err: syscall.ECONNREFUSED}
		for n := range 60 {
			topic := fmt.Sprintf("orders-%02d", n)
			for lane := range 2 {
				d.of(topic, lane).Report(fmt.Errorf("describe %s: %w", topic, down))
				d.of(topic, lane).Report(fmt.Errorf("poll [%d]: %w", n, down))
			}
		}
		time.Sleep(settling)
		for _, r := range d.made {
			r.Recovered()
		}
		d.says(t,
			`level=WARN msg=failed pipelines=60 topics="orders-00, orders-01, orders-02, …" lanes=120 `+
				`error="describe orders-00: dial tcp 10.0.0.7:9092: connection refused"`,
			`level=INFO msg="go on" pipelines=60 topics="orders-00, orders-01, orders-02, …" `+
				`lanes=120 after=1s`)
	})
}

// A topic that stays broken does not hide that the others have recovered.
func TestOneThatStaysBrokenDoesNotHideThatOthersRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLanes(nil)
		for n := range 3 {
			d.of("orders", n).Report(refused(9092))
		}
		d.of("gone", 0).Report(errors.New("no such topic"))
		time.Sleep(10 * time.Second)
		for n := range 3 {
			d.of("orders", n).Recovered()
		}
		time.Sleep(time.Hour)
		d.of("gone", 0).Recovered()
		d.says(t,
			`level=WARN msg=failed topic=orders lanes=3 error="dial one:9092: refused"`,
			`level=WARN msg=failed topic=gone lane=0 error="no such topic"`,
			`level=INFO msg="go on" topic=orders lanes=3 after=10s still_failing=1`,
			`level=INFO msg="go on" topic=gone lane=0 after=1h0m10s`)
	})
}
