package process

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// What an operator reads: what runs, where its page is, that it is ready, and what became of the
// records.
func TestTheLogOfARunTellsWhatRunsAndWhatItDid(t *testing.T) {
	r := startReloading(t, neverLook)
	r.drain("orders", 3)
	r.write(orders(), refunds("lanes: 1"))
	r.reload()
	text := ""
	testkit.Eventually(t, time.Minute, "it is ready", func() bool {
		return strings.Contains(r.log.String(), "msg=ready")
	})
	r.stop()
	testkit.Eventually(t, time.Minute, "the last line", func() bool {
		text = r.log.String()
		return strings.Contains(text, "msg=stopped")
	})
	for line, times := range map[string]int{
		`"pipeline: orders → orders.clean" group=orders-dedup mode=enforce ` +
			`delivery=exactly_once ttl=168h0m0s id=\S+ store=\S+.* lanes=2\n`: 1,
		`"pipeline: payments → payments.clean" group=payments-dedup `:          1,
		`"pipeline: refunds → refunds.clean" group=refunds-dedup .* lanes=1\n`: 1,
		`"the status page answers" address=127\S+ page=http://127\S+/?\n`:      1,
		`msg=ready pipelines=2 after=\S+\n`:                                    1,
		`msg=stopped after=\S+ records=3 forwarded=3\n`:                        1,
		`=""`: 0, `=\[\]`: 0,
	} {
		if n := len(regexp.MustCompile(line).FindAllString(text, -1)); n != times {
			t.Errorf("%s: %d times, want %d", line, n, times)
		}
	}
}

func TestTotalsTellWhatBecameOfTheRecordsSinceTheLastLine(t *testing.T) {
	r := startReloading(t, neverLook)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.process.tellTotals(ctx, lookOften)
	}()
	defer func() { cancel(); <-ended }()
	r.drain("orders", 3)
	said := regexp.MustCompile(`msg=totals records=(\d) forwarded=(\d) in=20ms\n`)
	testkit.Eventually(t, time.Minute, "lines about three records", func() bool {
		sum := 0
		for _, line := range said.FindAllStringSubmatch(r.log.String(), -1) {
			n, err := strconv.Atoi(line[1])
			if err != nil || line[1] != line[2] {
				t.Fatalf("%q %v", line, err)
			}
			sum += n
		}
		return sum == 3
	})
}

func TestTheTotalsLeaveOutWhatDidNotHappen(t *testing.T) {
	earlier := tally{pipeline.Forwarded: 2, pipeline.Duplicate: 1}
	now := tally{pipeline.Forwarded: 9, pipeline.Duplicate: 1, pipeline.DeadLettered: 1}
	var text testkit.Printed
	log, _ := NewLogger(config.Log{Level: "info"}, &text, nil)
	log.Info("totals", now.since(earlier).fields()...)
	if got := text.String(); !strings.Contains(got, "records=8 forwarded=7 dead_lettered=1\n") {
		t.Error(got)
	}
}

// Where nothing flows there is nothing to tell.
func TestNoTotalsWhereNothingFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text testkit.Printed
		log, _ := NewLogger(config.Log{Level: "info"}, &text, nil)
		p := &Process{log: log}
		p.active.Store(&active{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.tellTotals(ctx, totalsEvery)
		}()
		time.Sleep(10 * totalsEvery)
		cancel()
		<-ended
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "ready") {
			t.Error(got)
		}
	})
}

func TestALineHasNoEmptyFields(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var text testkit.Printed
		log, _ := NewLogger(config.Log{Level: "info", Format: format}, &text, nil)
		log.Info("m", "hint", "", "error", nil, "list", []string{}, "n", 0, "no", false,
			slog.Group("g", "empty", "", "full", "x"))
		got := text.String()
		for _, gone := range []string{"hint", "error", "list", "empty"} {
			if strings.Contains(got, gone) {
				t.Errorf("%s is there: %s", gone, got)
			}
		}
		for _, stays := range []string{"n", "no", "full"} {
			if !strings.Contains(got, stays) {
				t.Errorf("%s is missing: %s", stays, got)
			}
		}
	}
}
