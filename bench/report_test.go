package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/lab/workload"
)

func TestTheTextBetweenTheMarkersIsReplaced(t *testing.T) {
	document := "# Title\n<!-- bench compare -->\nold\n<!-- /bench compare -->\n<!-- bench " +
		"latency -->\nkept\n<!-- /bench latency -->\n"
	got, err := replaceBetween(document, "compare", "new\n")
	want := "# Title\n<!-- bench compare -->\nnew\n<!-- /bench compare -->\n<!-- bench latency " +
		"-->\nkept\n<!-- /bench latency -->\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if again, err := replaceBetween(got, "compare", "new\n"); err != nil || again != want {
		t.Errorf("again: got %q, %v", again, err)
	}
	for _, broken := range []string{"", "<!-- bench compare -->",
		"<!-- /bench compare --><!-- bench compare -->"} {
		if _, err := replaceBetween(broken, "compare", "new"); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}

func TestTheDocumentHasAPlaceForEveryMode(t *testing.T) {
	document, err := os.ReadFile("../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modes {
		if _, err := replaceBetween(string(document), m.name, "text"); err != nil {
			t.Error(err)
		}
	}
}

func TestTheTableComparesAndCountsWhatIsWrong(t *testing.T) {
	runs := []Run{
		{Contestant: "lwt", Round: 1, Rate: 5000, CPUMicros: 24, KafkaMicros: 1.5,
			StoreMicros: 150, PeakMiB: 30, Found: &workload.Found{Lost: 1}},
		{Contestant: kdedupCassandra, Round: 1, Rate: 50_000, CPUMicros: 8, PeakMiB: 90,
			Found: &workload.Found{}},
		{Contestant: "claims", Round: 1, Rate: 80_000},
		{Contestant: "redis", Round: 1, Failure: "no"},
		{Contestant: "lwt", Round: 2, Rate: 4000, CPUMicros: 26, PeakMiB: 30,
			Found: &workload.Found{Lost: 3, Doubled: 2}},
		{Contestant: kdedupCassandra, Round: 2, Rate: 60_000, CPUMicros: 8, PeakMiB: 92,
			Found: &workload.Found{}},
	}
	got := strings.Split(strings.TrimSpace(runsTable(runs, modes[0])), "\n")
	want := []string{
		"|  | records/s | CPU µs/record | Kafka's / store's | peak RSS MiB | start s | lost | " +
			"doubled | changed | out of order | kdedup-cassandra is … times as fast |",
		"|---|---|---|---|---|---|---|---|---|---|---|",
		"| " + titleOf("lwt") + " | 4,500 (4,000–5,000) | 25.0 (24.0–26.0) | 0.8 / 75.0 | 30 | 0.0 | " +
			"3 | 2 | 0 | 0 | 12.50 (10.00–15.00) |",
		"| " + titleOf(kdedupCassandra) +
			" | 55,000 (50,000–60,000) | 8.0 | – / – | 91 (90–92) | 0.0 | 0 | 0 | 0 | 0 | 1.00 |",
		"| " + titleOf("claims") + " | 80,000 | 0.0 | – / – | 0 | 0.0 | – | – | – | – | 0.62 |",
		"| " + titleOf("redis") + " | failed | failed | – / – | failed | failed | – | – | – | – | – |",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheReportSaysWhereAndHowItWasMeasured(t *testing.T) {
	r := Report{
		Mode: "compare", Date: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Command: "make bench",
		Machine: Machine{Cores: 2, CPU: "a CPU", Memory: 24 << 30, System: "linux", Go: "go1.26",
			Kdedup: "kdedup v1", Servers: []string{"Kafka 4"}, Load: 1.5},
		Skipped: []string{"Redis: none"},
	}
	text := r.markdown(modes[0])
	for _, want := range []string{"2026-11-21, `make bench`", "2 cores (a CPU), 24 GiB",
		"kdedup v1, go1.26, Kafka 4", "The machine was busy", "1.5 of 2 cores",
		"Skipped: Redis: none"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	r.Machine.Load = 0.3
	if text := r.markdown(modes[0]); strings.Contains(text, "busy") {
		t.Errorf("an idle machine counts as busy:\n%s", text)
	}
}

func TestWrongCallsAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dance"}, `there is no "dance"; there are compare, peers`},
		{[]string{"compare", "latency"}, "one word at most"},
		{[]string{"-only", "nobody"}, `-only: there is no contestant "nobody"`},
		{[]string{"-records", "0"}, "records must be at least 1"},
		{[]string{"-rounds", "0"}, "-rounds and -rate must be at least 1"},
	} {
		if _, err := parse(c.args, &strings.Builder{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.args, err, c.want)
		}
	}
}

func TestTheCommandIsShownAsItIsRepeated(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "make bench"},
		{[]string{"-rounds", "1", "latency"}, "make bench BENCH='-rounds 1 latency'"},
		{[]string{"peers"}, "make bench-peers"},
		{[]string{"-unmeasured", "1", "peers"}, "make bench-peers BENCH='-unmeasured 1'"},
		{[]string{"-topic", "buckets: 64; lanes: 4", "-docs", ""},
			`make bench BENCH='-topic "buckets: 64; lanes: 4" -docs ""'`},
	} {
		if got := shown(c.args); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestEveryModeHasAPlan(t *testing.T) {
	for _, m := range modes {
		c, err := parse([]string{"-records", "1000", "-topic", "buckets: 64; lanes: 4", m.name},
			&strings.Builder{})
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if len(c.suite.contestants) == 0 || len(c.suite.variants) == 0 {
			t.Errorf("%s measures nothing", m.name)
		}
		if diff := cmp.Diff(
			[]string{"buckets: 64", "lanes: 4"}, c.suite.settings.topic,
		); diff != "" {
			t.Errorf("%s: settings: -want +got:\n%s", m.name, diff)
		}
	}
}
