package process

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/process/server"
)

// verbose prints where it was made with %+v, as errors of some libraries do.
type verbose struct{ error }

func (v verbose) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.Error(), " stack of goroutine 1") }

// told is an event without its times.
func told(e server.Event) string {
	return fmt.Sprintf("%s %s|%s|%s|%s|%s|%s|%d", e.Level, e.Message, e.Error, e.Hint, e.Topic,
		e.Lane, e.Details, e.Count)
}

func TestWarningsAreKeptAndEverythingIsHandedOn(t *testing.T) {
	var out bytes.Buffer
	events := newEventLog(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))
	log := slog.New(events)
	lane := log.With("topic", "orders", "lane", 1)
	lane.Info("partitions assigned")
	lane.Warn("lane failed", "error", verbose{errors.New("EOF from port 4711")}, "hint", "wait",
		"pause", "1s")
	lane.WithGroup("batch").With("records", 7).Error("lane stopped", "error", "none")
	lane.Warn("lane failed", "error", verbose{errors.New("EOF from port 4712")}, "pause", "2s")
	log.With("lane", 2).Warn("lane failed", "error", verbose{errors.New("EOF from port 4712")})

	var got []string
	for _, e := range events.latest() {
		got = append(got, told(e))
	}
	want := []string{
		"WARN lane failed|EOF from port 4712|||2||1",
		"WARN lane failed|EOF from port 4712||orders|1|pause=2s|2",
		"ERROR lane stopped|||orders|1|batch.records=7 batch.error=none|1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 ||
		!strings.Contains(text, `msg="lane stopped" topic=orders lane=1 batch.records=7`) {
		t.Errorf("handed on:\n%s", text)
	}
	if again := events.latest()[1]; !again.First.Before(again.Last) {
		t.Errorf("first %v, last %v", again.First, again.Last)
	}
}

func TestKeptEventsAreBounded(t *testing.T) {
	events := newEventLog(slog.DiscardHandler)
	log := slog.New(events)
	for n := range 3 * maxEvents {
		log.Warn(strings.Repeat("x", n), "error", strings.Repeat("é", 10*maxEventBytes))
	}
	kept := events.latest()
	if len(kept) != maxEvents || len(kept[0].Message) != 3*maxEvents-1 {
		t.Errorf("%d events, the latest has a message of %d bytes", len(kept), len(kept[0].Message))
	}
	if n := len(kept[0].Error); n > maxEventBytes+len("…") {
		t.Errorf("an error of %d bytes is kept", n)
	}
}

func TestLoggersShareWhatIsKept(t *testing.T) {
	events := newEventLog(slog.DiscardHandler)
	log := slog.New(events)
	done := make(chan struct{})
	for lane := range 4 {
		go func() {
			for range 100 {
				log.With("lane", lane).Warn("lane failed")
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		<-done
	}
	all := events.latest()
	if len(all) != 1 || all[0].Count != 400 || all[0].Lane != "0, 1, 2, 3" {
		t.Errorf("%+v", all)
	}
}

// Two lanes that meet the same are one row, with the time of the last one and the number of both.
func TestWhatSeveralLanesMeetIsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := newEventLog(slog.DiscardHandler)
		log := slog.New(events).With("topic", "orders")
		begin := time.Now()
		for _, lane := range []int{10, 2, 2} {
			log.With("lane", lane).Warn("records have no ID", "records", 7+lane)
			time.Sleep(time.Second) // of the bubble
		}
		log.Warn("records have no ID")
		slog.New(events).With("topic", "refunds", "lane", 2).Warn("records have no ID")
		all := events.latest()
		var got []string
		for _, e := range all {
			got = append(got, told(e))
		}
		want := []string{
			"WARN records have no ID|||refunds|2||1",
			"WARN records have no ID|||orders|||1",
			"WARN records have no ID|||orders|2, 10|lane 2: records=9; lane 10: records=17|3",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("kept (-want +got):\n%s", diff)
		}
		if e := all[2]; !e.First.Equal(begin) || !e.Last.Equal(begin.Add(2*time.Second)) {
			t.Errorf("from %v to %v", e.First, e.Last)
		}
	})
}

// Lanes that fail the same way for an hour write a line a minute, with how many it stands for.
func TestOfEqualLinesTheFirstIsWrittenAndThenTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		leaveTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		events := newEventLog(slog.NewTextHandler(&out,
			&slog.HandlerOptions{ReplaceAttr: leaveTime}))
		log := slog.New(events).With("topic", "orders")
		for n := range 70 { // every two seconds
			log.With("lane", 0).Warn("lane failed", "error", fmt.Errorf("EOF from port %d", n))
			if n == 3 {
				log.With("lane", 1).Warn("lane failed", "error", fmt.Errorf("EOF from port %d", n))
				log.Info("partitions assigned")
				log.Info("partitions assigned")
				slog.New(events.everyLine()).Error("refused")
				slog.New(events.everyLine()).Error("refused")
				slog.New(events).Warn("input gone", "topic", "tenant-1")
				slog.New(events).Warn("input gone", "topic", "tenant-2")
			}
			time.Sleep(2 * time.Second) // of the bubble
		}
		log.Info("the end")
		if err := events.flush(); err != nil {
			t.Fatal(err)
		}
		want := `level=WARN msg="lane failed" topic=orders lane=0 error="EOF from port 0"
level=WARN msg="lane failed" topic=orders lane=1 error="EOF from port 3"
level=INFO msg="partitions assigned" topic=orders
level=INFO msg="partitions assigned" topic=orders
level=ERROR msg=refused
level=ERROR msg=refused
level=WARN msg="input gone" topic=tenant-1
level=WARN msg="input gone" topic=tenant-2
level=WARN msg="lane failed" topic=orders lane=0 error="EOF from port 29" repeated=29
level=WARN msg="lane failed" topic=orders lane=0 error="EOF from port 59" repeated=30
level=INFO msg="the end" topic=orders
level=WARN msg="lane failed" topic=orders lane=0 error="EOF from port 69" repeated=10
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Sixty pipelines meet one cause: a few have lines of their own, the rest one, and a warning that
// was there before stays on the page.
func TestAWarningOfManyTopicsLeavesOlderOnesOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		events := newEventLog(slog.NewTextHandler(&out, nil))
		log := slog.New(events)
		log.Warn("the disk is nearly full")
		for range 5 {
			for n := range 60 {
				topic := fmt.Sprintf("tenant-%d", n)
				log.With("topic", topic, "lane", 0).Warn("lane is late",
					"error", fmt.Errorf("look at %s: EOF", topic))
			}
			time.Sleep(time.Second) // of the bubble
		}
		var got []string
		for _, e := range events.latest() {
			got = append(got, told(e))
		}
		want := []string{
			"WARN lane is late|look at tenant-59: EOF||tenant-10, tenant-11, tenant-12 and 53 more|||280",
			"WARN lane is late|look at tenant-3: EOF||tenant-3|0||5",
			"WARN lane is late|look at tenant-2: EOF||tenant-2|0||5",
			"WARN lane is late|look at tenant-1: EOF||tenant-1|0||5",
			"WARN lane is late|look at tenant-0: EOF||tenant-0|0||5",
			"WARN the disk is nearly full||||||1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		if n := strings.Count(out.String(), "\n"); n != 6 {
			t.Errorf("%d lines:\n%s", n, &out)
		}
		if err := events.flush(); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Count(text, "\n") != 11 || !strings.Contains(text,
			`repeated=279 also_of="tenant-10, tenant-11, tenant-12 and 53 more"`) {
			t.Error(text)
		}
	})
}
