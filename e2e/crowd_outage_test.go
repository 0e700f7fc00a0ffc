package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The broker dies under sixty pipelines, and stays away for longer than their sessions. The log and
// the page have a few lines and rows about it, with all pipelines in them and a remedy. What was on
// the page before is still there.
func TestAnOutageUnderManyPipelinesIsAFewLines(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	const topics, mostLines, mostRows = 60, 12, 12
	d, kafka := crowd(t, topics, "session_timeout: 10s")
	one := d.start("one")
	d.settles(one, topics)
	before := one.warnings()
	rowsBefore := one.rows()

	kafka.Kill()
	testkit.Eventually(t, time.Minute, "readiness tells of the outage", func() bool {
		return !one.ready()
	})
	// as long as an operator needs to look
	pause := time.NewTimer(30 * time.Second)
	defer pause.Stop()
	<-pause.C
	lines, rows := one.warnings()[len(before):], one.rows()
	if len(lines) > mostLines {
		t.Errorf("%d lines of the log, at most %d are read:\n%s", len(lines), mostLines,
			strings.Join(lines, "\n"))
	}
	if len(rows) > len(rowsBefore)+mostRows {
		t.Errorf("%d rows on the page:\n%+v", len(rows), rows)
	}
	for _, row := range rows[:min(len(rows), mostRows)] {
		for _, driver := range []string{"no hosts available in the pool", "unable to dial"} {
			if strings.Contains(row.Message, driver) {
				t.Errorf("a driver's words on the page: %s", row.Message)
			}
		}
	}
	t.Logf("%d lines, %d rows:\n%s", len(lines), len(rows), strings.Join(lines, "\n"))

	if err := kafka.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 5*time.Minute, "all pipelines go on", one.ready)
	for i := range topics {
		d.produceOrders(i, 2)
	}
	if err := d.client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 5*time.Minute, "the orders after the outage", func() bool {
		return one.forwarded() >= 2*topics*orders
	})
	if all := one.warnings()[len(before):]; len(all) > 2*mostLines {
		t.Errorf("%d lines with the recovery:\n%s", len(all), strings.Join(all, "\n"))
	}
	one.stop()
	for i := range topics {
		d.mustHaveEachOnce(i)
	}
}

// warnings are the lines of the log from WARN on.
func (i *instance) warnings() (lines []string) {
	for line := range strings.Lines(i.text()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

type pageRow struct{ Level, Message, Topic, Error, Hint string }

// rows are those of the page's warnings and errors.
func (i *instance) rows() []pageRow {
	i.t.Helper()
	var status struct{ Events []pageRow }
	if err := json.Unmarshal(i.get("/api/status", ""), &status); err != nil {
		i.t.Fatal(err)
	}
	return status.Events
}
