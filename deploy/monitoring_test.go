package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/kdedup/kdedup/config"
)

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

// mounted is what a service finds at a path, from the top of the repository.
func mounted(t *testing.T, service, target string) string {
	t.Helper()
	project := composed(t)
	for _, v := range project.Services[service].Volumes {
		if v.Target == target {
			source, err := filepath.Rel(project.WorkingDir, v.Source)
			if err != nil {
				t.Fatal(err)
			}
			return source
		}
	}
	t.Fatalf("%s has nothing at %s", service, target)
	return ""
}

func TestGrafanaFindsTheBoards(t *testing.T) {
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, "compose/grafana/provisioning/dashboards/kdedup.yaml", &boards)
	path := boards.Providers[0].Options.Path
	if source := mounted(t, "grafana", path); source != "charts/kdedup/dashboards" {
		t.Errorf("%s is %s, want the chart's boards", path, source)
	}
	home := composed(t).Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if home == nil || *home != path+"/kdedup-overview.json" {
		t.Errorf("the home board is not %s/kdedup-overview.json", path)
	}
}

func TestGrafanaAsksThePrometheusOfCompose(t *testing.T) {
	var sources struct {
		Datasources []struct {
			Type, URL string
			IsDefault bool `yaml:"isDefault"`
		}
	}
	readYAML(t, "compose/grafana/provisioning/datasources/prometheus.yaml", &sources)
	source := sources.Datasources[0]
	// The boards have the data source as a variable, which begins with the default one.
	if source.Type != "prometheus" || !source.IsDefault || source.URL != "http://prometheus:9090" {
		t.Errorf("the default data source is %+v", source)
	}
}

func TestPrometheusScrapesKdedupAndLoadsTheRules(t *testing.T) {
	var prometheus struct {
		RuleFiles []string `yaml:"rule_files"`
		Jobs      []struct {
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
	if len(prometheus.RuleFiles) != 1 || filepath.Base(prometheus.RuleFiles[0]) != "*.yaml" {
		t.Fatalf("rule files: %q", prometheus.RuleFiles)
	}
	if source := mounted(
		t, "prometheus", filepath.Dir(prometheus.RuleFiles[0]),
	); source != "charts/kdedup/rules" {
		t.Errorf("Prometheus loads the rules of %s, want the chart's", source)
	}
}
