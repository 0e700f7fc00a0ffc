package charts

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// chartWith is the chart with other files in rules and dashboards.
func chartWith(t *testing.T, files map[string]string) *chart.Chart {
	t.Helper()
	c := loadChart(t)
	c.Files = slices.DeleteFunc(c.Files, func(f *common.File) bool {
		return strings.HasPrefix(f.Name, "rules/") || strings.HasPrefix(f.Name, "dashboards/")
	})
	for name, text := range files {
		c.Files = append(c.Files, &common.File{Name: name, Data: []byte(text)})
	}
	return c
}

const alert = `# A comment.
groups:
  - name: kdedup
    interval: 1m
    rules:
      - alert: Blocked
        expr: max by (pod) (kdedup_store_blocked{topic!=""}) > 0
        for: 5m
        labels: {severity: page}
        annotations:
          summary: '{{ $labels.pod }} waits since {{ $value | humanizeDuration }}'
`

const record = `groups:
  - name: kdedup.records
    limit: 12345678
    rules:
      - {record: "topic:kdedup_records:rate5m", expr: "sum by (topic) (rate(kdedup_records_total[5m]))"}
`

// groupsOf are the groups of rule files, in the order of the files.
func groupsOf(t *testing.T, texts ...string) []any {
	t.Helper()
	var all []any
	for _, text := range texts {
		var file struct{ Groups []any }
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		all = append(all, file.Groups...)
	}
	return all
}

// installed are the groups of the PrometheusRule.
func installed(t *testing.T, r release) []any {
	t.Helper()
	rules := find[*monitoringv1.PrometheusRule](r)
	if len(rules) != 1 {
		t.Fatalf("got %d PrometheusRules", len(rules))
	}
	text, err := yaml.Marshal(rules[0].Spec)
	if err != nil {
		t.Fatal(err)
	}
	return groupsOf(t, string(text))
}

func TestRulesAreInstalledUnchanged(t *testing.T) {
	c := chartWith(t, map[string]string{"rules/b.yaml": record, "rules/a.yaml": alert,
		"rules/README.md": "no rules"})
	r := mustRender(t, c, valuesOf(t, "everything"))
	if diff := cmp.Diff(groupsOf(t, alert, record), installed(t, r)); diff != "" {
		t.Errorf("groups (-files +installed):\n%s", diff)
	}
}

func TestTheChartsOwnRulesAreInstalledUnchanged(t *testing.T) {
	files, err := filepath.Glob("kdedup/rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("the chart has no rules")
	}
	var texts []string
	for _, file := range files {
		texts = append(texts, string(read(t, file)))
	}
	r := mustRender(t, loadChart(t), valuesOf(t, "everything"))
	if diff := cmp.Diff(groupsOf(t, texts...), installed(t, r)); diff != "" {
		t.Errorf("groups (-files +installed):\n%s", diff)
	}
}

func TestWhatIsNoRuleFileIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"tests: []":           "rules/a.yaml is no rule file of Prometheus: it has no list of groups",
		"groups: [":           "rules/a.yaml is no rule file of Prometheus: error converting YAML",
		"groups: {name: one}": "rules/a.yaml is no rule file of Prometheus: it has no list of groups",
	} {
		_, err := render(chartWith(t, map[string]string{"rules/a.yaml": text}), "shop",
			valuesOf(t, "everything"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// dashboardsOf returns the data of the ConfigMap for Grafana, or nil.
func dashboardsOf(r release) map[string]string {
	data, _ := configMap(r, "shop-dedup-dashboards")
	return data
}

func TestDashboardsAreInstalledUnchanged(t *testing.T) {
	const board = "{\n  \"title\": \"kdedup\", \"legend\": \"{{ topic }}\",\n\n  \"panels\": " +
		"[{\"unit\": \"é\\t\"}]\n}\n"
	r := mustRender(t, chartWith(t, map[string]string{"dashboards/a.json": board,
		"dashboards/b.json": "{}"}), valuesOf(t, "everything"))
	if diff := cmp.Diff(
		map[string]string{"a.json": board, "b.json": "{}"}, dashboardsOf(r),
	); diff != "" {
		t.Errorf("dashboards (-files +installed):\n%s", diff)
	}
}

func TestTheChartsOwnDashboardsAreInstalledUnchanged(t *testing.T) {
	files, err := filepath.Glob("kdedup/dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	for _, file := range files {
		if want == nil {
			want = map[string]string{}
		}
		want[filepath.Base(file)] = string(read(t, file))
	}
	r := mustRender(t, loadChart(t), valuesOf(t, "everything"))
	if diff := cmp.Diff(want, dashboardsOf(r)); diff != "" {
		t.Errorf("dashboards (-files +installed):\n%s", diff)
	}
	size := 0
	for _, text := range want {
		size += len(text)
	}
	if size > 1<<20-64<<10 { // Kubernetes takes 1 MiB, and names and labels count
		t.Errorf("%d bytes of dashboards are too much for one ConfigMap", size)
	}
}

func TestTheSidecarFindsTheDashboards(t *testing.T) {
	c := chartWith(t, map[string]string{"dashboards/a.json": "{}"})
	for _, m := range find[*corev1.ConfigMap](mustRender(t, c, valuesOf(t, "everything"))) {
		want := ""
		if strings.HasSuffix(m.Name, "-dashboards") {
			want = "1"
		}
		if got := m.Labels["grafana_dashboard"]; got != want {
			t.Errorf("%s has the label %q", m.Name, got)
		}
	}
}

func TestNothingIsInstalledWhereTheChartHasNoFiles(t *testing.T) {
	r := mustRender(t, chartWith(t, nil), valuesOf(t, "everything"))
	if rules := find[*monitoringv1.PrometheusRule](r); len(rules) != 0 || dashboardsOf(r) != nil {
		t.Errorf("got %d rules, dashboards %v", len(rules), dashboardsOf(r))
	}
}
