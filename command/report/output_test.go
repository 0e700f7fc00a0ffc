package report

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// evil is an ID that somebody made up to harm the reader of the report.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'`

// hostile is a topic with everything that a report shows, and IDs and headers that try to break
// out.
func hostile() *topic {
	in := &topic{}
	for i := range 400 {
		id := "id-" + strconv.Itoa(i)
		if i%10 == 0 {
			id = evil
		}
		r := in.put(int32(i%3), time.Duration(i)*time.Minute, id, strconv.Itoa(i/390))
		r.Headers = append(r.Headers,
			kgo.RecordHeader{Key: "producer", Value: []byte("\x1b[31m<b>" + strconv.Itoa(i%40))})
	}
	in.put(0, 401*time.Minute, "", "")
	return in
}

func TestATerminalIsNotSteeredByWhatStandsInATopic(t *testing.T) {
	var text strings.Builder
	if err := hostile().build(t, func(o *Options) {
		o.Header = "producer"
	}).WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(text.String(), '\x1b') {
		t.Error("the table has an escape character")
	}
	for _, want := range []string{"<b>30", evil, "and 17 more", "CONFLICTS, EXAMPLES",
		"without an id  1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, text.String())
		}
	}
}

func TestIDsCanBeHidden(t *testing.T) {
	r := hostile().build(t, func(o *Options) { o.HideIDs = true })
	for _, write := range []func(*strings.Builder) error{
		func(to *strings.Builder) error { return r.WriteTable(to) },
		func(to *strings.Builder) error { return r.WriteJSON(to) },
		func(to *strings.Builder) error { return r.WriteHTML(to) },
	} {
		var text strings.Builder
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "alert") || !strings.Contains(text.String(), "sha256:") {
			t.Errorf("an ID is shown, or no hash:\n%s", text.String())
		}
	}
}

// What was published may be read by programs: fields stay.
func TestEveryFieldIsDocumented(t *testing.T) {
	var text strings.Builder
	if err := hostile().build(t, func(o *Options) {
		o.Header = "producer"
	}).WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, match := range regexp.MustCompile(`(?m)^ *"(\w+)":`).FindAllStringSubmatch(text.String(),
		-1) {
		seen++
		if !strings.Contains(string(doc), "`"+match[1]+"`") {
			t.Errorf("docs/report.md does not name the field %s", match[1])
		}
	}
	if seen == 0 {
		t.Error("no field was found")
	}
	var back Report
	if err := json.Unmarshal([]byte(text.String()), &back); err != nil {
		t.Error(err)
	}
}

func TestReportsOfNothing(t *testing.T) {
	noIDs, noCopies, single := &topic{}, &topic{}, &topic{}
	single.put(0, 0, "a", "v")
	noIDs.put(0, 0, "", "v")
	noCopies.put(0, 0, "a", "v")
	noCopies.put(0, time.Hour, "b", "v")
	for want, in := range map[string]*topic{
		"There are no records in this range.": {}, "No record has a message ID": noIDs,
		"No copies among 2 records in 1 h.": noCopies, "No copies among 1 record in": single,
	} {
		r := in.build(t, nil)
		var table, page strings.Builder
		if err := r.WriteTable(&table); err != nil {
			t.Error(err)
		}
		if err := r.WriteHTML(&page); err != nil {
			t.Error(err)
		}
		if !strings.Contains(table.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing in:\n%s\n%s", want, table.String(), page.String())
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.25: "250 ms", 1: "1 s", 60: "1 min", 90: "90 s", 119.5: "119.5 s", 150: "2 min 30 s",
		3600: "1 h", 3660: "61 min", 12 * 3600: "12 h",
		86400: "1 d", 31 * 3600: "31 h", 9*86400 + 3700: "9 d 1 h", 400 * 86400: "400 d",
	} {
		if got := span(seconds); got != want {
			t.Errorf("span(%v) = %q, want %q", seconds, got, want)
		}
	}
	for share, want := range map[float64]string{
		0: "0 %", 1: "100 %", 0.00001: "<0.01 %", 0.99999: "99.99 %", 0.0049: "0.49 %",
		0.5: "50.0 %", 0.119: "11.9 %", 1 / 5001.0: "0.02 %", 5000 / 5001.0: "99.98 %",
	} {
		if got := percent(share); got != want {
			t.Errorf("percent(%v) = %q, want %q", share, got, want)
		}
	}
	for ttl, want := range map[time.Duration]string{time.Second: "1s", time.Minute: "1m",
		90 * time.Minute: "1h30m", 168 * time.Hour: "168h", 61 * time.Second: "1m1s"} {
		if got := writeTTL(ttl); got != want {
			t.Errorf("writeTTL(%v) = %q, want %q", ttl, got, want)
		}
	}
	for n, want := range map[float64]string{7: "7", 123: "130", 9_801: "9,900",
		1_234_567: "1,300,000"} {
		if got := estimate(&n); got != want {
			t.Errorf("estimate(%v) = %q, want %q", n, got, want)
		}
	}
}
