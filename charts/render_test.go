// Package charts holds the Helm chart. Its tests render it as Helm does and read what comes out as
// Kubernetes, the operators and kdedup would: no cluster and no network is needed.
package charts

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shape is a file of values under kdedup/ci and what it takes from outside the release.
type shape struct {
	name     string
	external []string          // "kind name" of the objects that somebody else makes
	env      map[string]string // what comes by envFrom
}

var shapes = []shape{
	{name: "default"},
	{name: "embedded"},
	{name: "claimlog"},
	{name: "cassandralog"},
	{name: "keepers", external: []string{"Secret kdedup-keepers"}},
	{name: "deployment", external: []string{"ServiceAccount default"}},
	{
		name: "ha",
		external: []string{
			"Secret cassandra-kdedup", "Secret kafka-ca", "Secret kafka-kdedup",
			"Secret kafka-kdedup-setup",
			"Secret kdedup-status", "Secret kdedup-tls",
		},
		env: map[string]string{"CASSANDRA_USERNAME": "kdedup"},
	},
	{name: "postgres", external: []string{"Secret postgres-kdedup"}},
	{
		name: "everything",
		external: []string{
			"ConfigMap ca-bundle", "ConfigMap more-settings", "Secret kafka-kdedup",
			"Secret registry",
			"TriggerAuthentication kdedup-kafka",
		},
	},
}

func TestEveryFileOfValuesIsAShape(t *testing.T) {
	files, err := filepath.Glob("kdedup/ci/*-values.yaml")
	if err != nil || len(files) != len(shapes) {
		t.Errorf("got %d files and %d shapes: %v, %v", len(files), len(shapes), files, err)
	}
}

// eachShape renders every file of values, and builds every example for Kustomize.
func eachShape(t *testing.T, check func(*testing.T, shape, release)) {
	t.Helper()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			check(t, s, mustRender(t, loadChart(t), valuesOf(t, s.name)))
		})
	}
	for _, o := range overlays {
		t.Run("kustomize/"+o.name, func(t *testing.T) {
			s, r := o.build(t)
			check(t, s, r)
		})
	}
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir("kdedup")
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func valuesOf(t *testing.T, shape string) map[string]any {
	t.Helper()
	values, err := common.ReadValuesFile("kdedup/ci/" + shape + "-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// release is what Helm would send to a cluster.
type release struct {
	objects []metav1.Object
	notes   string
}

func mustRender(t *testing.T, c *chart.Chart, values map[string]any) release {
	t.Helper()
	r, err := render(c, "shop", values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// renderFiles does what `helm template` does: defaults, schema, templates.
func renderFiles(
	c *chart.Chart, name string, values map[string]any,
) (map[string]string, error) {
	options := common.ReleaseOptions{Name: name, Namespace: "streaming", Revision: 1,
		IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

func render(c *chart.Chart, name string, values map[string]any) (release, error) {
	files, err := renderFiles(c, name, values)
	if err != nil {
		return release{}, err
	}
	var r release
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, "NOTES.txt") {
			r.notes = files[file]
			continue
		}
		objects, err := decodeAll(files[file])
		if err != nil {
			return release{}, err
		}
		r.objects = append(r.objects, objects...)
	}
	return r, nil
}

// find returns the objects of a type.
func find[T metav1.Object](r release) []T {
	var found []T
	for _, o := range r.objects {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

func TestLint(t *testing.T) {
	for _, s := range shapes {
		for _, m := range lint.RunAll("kdedup", valuesOf(t, s.name), "streaming").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", s.name, m)
			}
		}
	}
}

var templateLeft = regexp.MustCompile(`<no value>|%!|\{\{|<nil>`)

func TestTheNotesSayWhatWasInstalled(t *testing.T) {
	eachShape(t, func(t *testing.T, s shape, r release) {
		if left := templateLeft.FindString(r.notes); left != "" {
			t.Errorf("the notes hold %q:\n%s", left, r.notes)
		}
		for _, want := range notesOf[s.name] {
			if !strings.Contains(r.notes, want) {
				t.Errorf("the notes lack %q:\n%s", want, r.notes)
			}
		}
	})
}

var notesOf = map[string][]string{
	"default":    {"statefulset/shop-kdedup", "setup.enabled=true", "test shop"},
	"embedded":   {"statefulset/shop-kdedup", "volume store-shop-kdedup-0", "test shop"},
	"deployment": {"deployment/shop-kdedup", "get new names"},
	"ha":         {"https://127.0.0.1:9480/", "orders.clean must read"},
	"everything": {"statefulset/shop-dedup", "orders.clean, payments.clean must read"},
}
