package deploy

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// board is what these tests look at of a Grafana dashboard. That every panel shows something is
// tested in command, on a real Prometheus.
type board struct {
	UID, Title, Description string
	Panels                  []panel
	Templating              struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	Datasource  datasource
	GridPos     struct{ X, Y, W, H int }
	Panels      []panel // of a row that is closed until somebody opens it
	FieldConfig struct {
		Defaults  struct{ Unit string }
		Overrides []struct{ Matcher struct{ ID, Options string } }
	}
	Transformations []struct {
		ID      string
		Options struct{ IndexByName map[string]int }
	}
	Links   []struct{ Title, URL string }
	Targets []struct {
		Expr, RefID string
		Exemplar    bool
		Datasource  datasource
	}
}

type datasource struct{ Type, UID string }

// chosen is the data source of the variable.
var chosen = datasource{"prometheus", "${datasource}"}

// all has the panels of closed rows, too.
func (b board) all() (all []panel) {
	for _, p := range b.Panels {
		all = append(append(all, p), p.Panels...)
	}
	return all
}

func boards(t *testing.T) map[string]board {
	t.Helper()
	files, err := filepath.Glob("../charts/kdedup/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no boards: %v", err)
	}
	all := make(map[string]board)
	for _, file := range files {
		var b board
		if err := json.Unmarshal([]byte(read(t, file)), &b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = b
	}
	return all
}

func TestBoardsAreKnownByTheirFile(t *testing.T) {
	want := []string{"kdedup-duplicates", "kdedup-fleet", "kdedup-kafka", "kdedup-overview",
		"kdedup-store"}
	all := boards(t)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(all))); diff != "" {
		t.Errorf("boards (-want +got):\n%s", diff)
	}
	for name, b := range all {
		if b.UID != name || b.Description == "" || !strings.HasPrefix(b.Title, "kdedup / ") {
			t.Errorf("%s has the uid %q, the title %q and the description %q", name, b.UID, b.Title,
				b.Description)
		}
		if b.Templating.List[0].Type != "datasource" {
			t.Errorf("%s does not begin with the data source as a variable", name)
		}
	}
}

func TestEveryPanelSaysWhatItShows(t *testing.T) {
	for name, b := range boards(t) {
		ids := make(map[int]string)
		for _, p := range b.all() {
			if other, taken := ids[p.ID]; taken {
				t.Errorf("%s: %q and %q have the ID %d", name, other, p.Title, p.ID)
			}
			ids[p.ID] = p.Title
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" ||
				len(p.Targets) == 0 {
				t.Errorf("%s: %q lacks a title, a description, a unit or a query", name, p.Title)
			}
			checkQueries(t, name, p)
		}
	}
}

// exemplified are the slowest of the latencies that lead to traces.
var exemplified = regexp.MustCompile(
	`0\.99.*kdedup_(end_to_end|forward_duration|commit_duration)_seconds_bucket`)

func checkQueries(t *testing.T, name string, p panel) {
	t.Helper()
	for i, target := range p.Targets {
		if p.Datasource != chosen || target.Datasource != chosen {
			t.Errorf("%s: %q does not ask the data source of the variable", name, p.Title)
		}
		if target.RefID != string(rune('A'+i)) {
			t.Errorf("%s: query %d of %q has the reference %s", name, i, p.Title, target.RefID)
		}
		if strings.Contains(target.Expr, "rate(") && !strings.Contains(target.Expr, "$__r") {
			t.Errorf("%s: %q has a fixed interval: %s", name, p.Title, target.Expr)
		}
		want := p.Type == "timeseries" && exemplified.MatchString(target.Expr)
		if target.Exemplar != want {
			t.Errorf("%s: %q asks for exemplars: %v, want %v", name, p.Title, target.Exemplar,
				want)
		}
		if !strings.Contains(target.Expr, `instance=~"$instance"`) {
			t.Errorf("%s: %q ignores the instances that were chosen: %s", name, p.Title,
				target.Expr)
		}
	}
}

func TestPanelsFillTheRowsAndDoNotOverlap(t *testing.T) {
	for name, b := range boards(t) {
		fill(t, name, b.Panels)
		for _, p := range b.Panels {
			fill(t, name+", "+p.Title, p.Panels)
		}
	}
}

// Prometheus answers in the order of the texts: 1, 10, 1.2096e+06.
func TestBarsOfHistogramsAreInTheOrderOfTheirBounds(t *testing.T) {
	bars := 0
	for name, b := range boards(t) {
		for _, p := range b.all() {
			if p.Type != "bargauge" {
				continue
			}
			bars++
			places := make(map[float64]int)
			for _, how := range p.Transformations {
				for bound, place := range how.Options.IndexByName {
					n, err := strconv.ParseFloat(bound, 64)
					if at, known := places[n]; err != nil || known && at != place {
						t.Errorf("%s: %q puts %s to %d: %v", name, p.Title, bound, place, err)
					}
					places[n] = place
				}
			}
			for i, bound := range slices.Sorted(maps.Keys(places)) {
				if places[bound] != i {
					t.Errorf("%s: %q puts %v to %d, want %d", name, p.Title, bound, places[bound],
						i)
				}
			}
			if len(places) != len(p.FieldConfig.Overrides) {
				t.Errorf("%s: %q orders %d bars and names %d", name, p.Title, len(places),
					len(p.FieldConfig.Overrides))
			}
		}
	}
	if bars == 0 {
		t.Error("there are no bars")
	}
}

func fill(t *testing.T, name string, panels []panel) {
	t.Helper()
	taken := make(map[[2]int]string)
	for _, p := range panels {
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: %q is wider than the board", name, p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s: %q lies on %q", name, p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	for _, p := range panels {
		if taken[[2]int{0, p.GridPos.Y}] == "" || taken[[2]int{23, p.GridPos.Y}] == "" {
			t.Errorf("%s: the row of %q has a gap", name, p.Title)
		}
	}
}

var (
	metricInText = regexp.MustCompile(`kdedup_[a-z0-9_]+`)
	metricTitle  = regexp.MustCompile("(?m)^### `(kdedup_[a-z0-9_]+)`$")
	ofHistogram  = regexp.MustCompile(`_seconds_(bucket|sum|count)$`)
)

// documented lists the metrics of docs/metrics.md, which is made from what the packages register.
func documented(t *testing.T) (names []string) {
	t.Helper()
	for _, match := range metricTitle.FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		names = append(names, match[1])
	}
	return names
}

func TestEveryMetricIsOnABoard(t *testing.T) {
	// What the boards do not show, because something else there shows it better.
	elsewhere := []string{
		"kdedup_input_open_transaction_records", // the alert KdedupOpenTransaction
		"kdedup_input_open_transaction_seconds", // as above
		"kdedup_kafka_client_disconnects_total", // brokers close idle connections
		"kdedup_lane_up",                        // kdedup_lane_ready
		"kdedup_records_in_flight",              // the status page
		// the alert KdedupNotStarted: no lane has a series yet
		"kdedup_started",
		"kdedup_topics_waiting",          // the log names each with its reason
		"kdedup_log_lines_dropped_total", // whoever reads the log again is told in it
	}
	shown := make(map[string]bool)
	for _, b := range boards(t) {
		for _, p := range b.all() {
			for _, target := range p.Targets {
				for _, name := range metricInText.FindAllString(target.Expr, -1) {
					shown[ofHistogram.ReplaceAllString(name, "_seconds")] = true
				}
			}
		}
	}
	for _, name := range elsewhere {
		shown[name] = true
	}
	if diff := cmp.Diff(
		slices.Sorted(slices.Values(documented(t))), slices.Sorted(maps.Keys(shown)),
	); diff != "" {
		t.Errorf("metrics (-documented +shown):\n%s", diff)
	}
}

func TestPanelsLinkToSectionsOfTheRunbook(t *testing.T) {
	sections := sectionsOf(read(t, "../docs/runbook.md"))
	linked := 0
	for name, b := range boards(t) {
		for _, p := range b.all() {
			for _, link := range p.Links {
				linked++
				if _, anchor, _ := strings.Cut(
					link.URL, "docs/runbook.md#",
				); sections[anchor] == "" {
					t.Errorf("%s: %q links to %s, which has no section", name, p.Title, link.URL)
				}
			}
		}
	}
	if linked == 0 {
		t.Error("no panel links to the runbook")
	}
}
