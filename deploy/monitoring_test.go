package deploy

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/kdedup/kdedup/config"
)

// board is what this test looks at of a Grafana dashboard.
type board struct {
	UID    string
	Panels []struct {
		ID         int
		Title      string
		Datasource struct{ UID string }
		Targets    []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	}
}

func readBoard(t *testing.T) board {
	t.Helper()
	data, err := os.ReadFile("compose/grafana/dashboards/kdedup.json")
	if err != nil {
		t.Fatal(err)
	}
	var b board
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

var (
	metricInSource = regexp.MustCompile(`"(kdedup_[a-z0-9_]+)"`)
	metricInExpr   = regexp.MustCompile(`kdedup_[a-z0-9_]+`)
	ofHistogram    = regexp.MustCompile(`_seconds_(bucket|sum|count)$`)
)

// exported lists the metrics that the source names.
func exported(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "metrics.go" {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range metricInSource.FindAllSubmatch(source, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(names))
}

func TestBoardShowsTheMetricsThatExist(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range readBoard(t).Panels {
		for _, target := range p.Targets {
			for _, name := range metricInExpr.FindAllString(target.Expr, -1) {
				shown[ofHistogram.ReplaceAllString(name, "_seconds")] = true
			}
		}
	}
	if diff := cmp.Diff(exported(t), slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Errorf("metrics (-in the source +on the board):\n%s", diff)
	}
}

func TestBoardIsWellFormed(t *testing.T) {
	var provisioned struct {
		Datasources []struct{ UID, URL string }
	}
	readYAML(t, "compose/grafana/provisioning/datasources/prometheus.yaml", &provisioned)
	source := provisioned.Datasources[0]
	if want := "http://prometheus:9090"; source.URL != want {
		t.Errorf("the data source is %s, want %s", source.URL, want)
	}
	ids := map[int]string{}
	for _, p := range readBoard(t).Panels {
		if earlier, taken := ids[p.ID]; taken {
			t.Errorf("panels %q and %q have the ID %d", earlier, p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		for _, target := range p.Targets {
			if p.Datasource.UID != source.UID || target.Datasource.UID != source.UID {
				t.Errorf("panel %q asks another data source than %s", p.Title, source.UID)
			}
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") {
				t.Errorf("panel %q: parentheses do not match: %s", p.Title, target.Expr)
			}
		}
	}
}

func TestGrafanaFindsTheBoard(t *testing.T) {
	var provisioned struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, "compose/grafana/provisioning/dashboards/kdedup.yaml", &provisioned)
	path := provisioned.Providers[0].Options.Path
	grafana := composed(t).Services["grafana"]
	mounted := ""
	for _, v := range grafana.Volumes {
		if v.Target == path {
			mounted = v.Source
		}
	}
	if filepath.Base(mounted) != "dashboards" {
		t.Errorf("%s is %q, want the folder dashboards", path, mounted)
	}
	if home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; home == nil || *home != path+"/kdedup.json" {
		t.Errorf("the home board is not %s/kdedup.json", path)
	}
}

func TestPrometheusScrapesKdedup(t *testing.T) {
	var prometheus struct {
		Jobs []struct {
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "compose/prometheus.yml", &prometheus)
	c, err := config.Load("compose/kdedup.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{strings.Replace(c.Server.Listen, "0.0.0.0", "kdedup", 1)}
	if diff := cmp.Diff(want, prometheus.Jobs[0].Static[0].Targets); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}
