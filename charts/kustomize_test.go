package charts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const kustomize = "../deploy/kustomize/"

// base is the release that the base for Kustomize is made of. What decides over the pods overrides
// the file, which an overlay brings.
const base = `
fullnameOverride: kdedup
configFrom: {configMap: kdedup}
config: {store: {type: kafka}}
extraEnv: [{name: KDEDUP_SERVER_LOOKUP, value: "false"}]
setup: {enabled: true}
`

const madeByChartDocs = "# Made from the Helm chart by `make chart-docs`: change that, or write a patch.\n"

// variables is the ConfigMap with the settings that override the file, so that an overlay can merge
// others into them.
const variables = "kdedup-pods"

func TestTheKustomizeBaseIsWhatTheChartMakes(t *testing.T) {
	var pods, setup []string
	env := make(map[string]string)
	for _, o := range baseObjects(t) {
		hook := withoutHelm(o)
		overridable(o, env)
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(hook, "test"):
		case hook != "":
			setup = append(setup, string(text))
		default:
			pods = append(pods, string(text))
		}
	}
	keep(t, kustomize+"base/kdedup.yaml",
		[]byte(madeByChartDocs+strings.Join(pods, "---\n")))
	keep(t, kustomize+"setup/setup.yaml",
		[]byte(madeByChartDocs+strings.Join(setup, "---\n")))
	lines := madeByChartDocs
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines += name + "=" + env[name] + "\n"
	}
	keep(t, kustomize+"base/kdedup.env", []byte(lines))
}

func baseObjects(t *testing.T) (objects []map[string]any) {
	t.Helper()
	files, err := renderFiles(loadChart(t), "kdedup", layOver(t, nil, base))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, ".txt") {
			continue
		}
		for _, document := range separator.Split(files[file], -1) {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			if o != nil {
				objects = append(objects, o)
			}
		}
	}
	return objects
}

// withoutHelm takes away what belongs to Helm, or to one release, and returns the hook. The policy
// lets nobody in: there is no test of the release.
func withoutHelm(o map[string]any) (hook string) {
	metadata := o["metadata"].(map[string]any)
	hook, _ = at(metadata, "annotations")["helm.sh/hook"].(string)
	delete(metadata, "annotations")
	delete(metadata, "namespace")
	spec := at(o, "spec")
	if o["kind"] == "NetworkPolicy" {
		delete(spec, "ingress")
	}
	template := at(spec, "template", "metadata")
	delete(template, "annotations")
	for _, labels := range []map[string]any{at(metadata, "labels"), at(template, "labels")} {
		for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by",
			"app.kubernetes.io/version"} {
			delete(labels, label)
		}
	}
	return hook
}

// overridable moves the variables that are written out to where an overlay can merge others.
func overridable(o map[string]any, env map[string]string) {
	containers, _ := at(o, "spec", "template", "spec")["containers"].([]any)
	for _, c := range containers {
		container := c.(map[string]any)
		all, _ := container["env"].([]any)
		stay := slices.DeleteFunc(all, func(e any) bool {
			name, value := e.(map[string]any)["name"].(string), e.(map[string]any)["value"]
			if value != nil {
				env[name] = value.(string)
			}
			return value != nil
		})
		container["env"] = stay
		if len(stay) == 0 {
			delete(container, "env")
		}
		container["envFrom"] = []any{
			map[string]any{"configMapRef": map[string]any{"name": variables}}}
	}
}

// at is the map at a path, or an empty one.
func at(o map[string]any, path ...string) map[string]any {
	for _, key := range path {
		o, _ = o[key].(map[string]any)
	}
	return o
}

// overlay is an example for Kustomize and what it takes from outside.
type overlay struct {
	shape
	store string // the type of it
	pods  int32
	own   int // claims of volumes
	in    int // rules of the policy that let somebody in
}

var overlays = []overlay{
	{shape{name: "claim-log", external: []string{"Secret kdedup", "Secret kdedup-setup",
		"Secret main-cluster-ca-cert"}}, "kafka", 3, 0, 1},
	{shape{name: "one-pod"}, "embedded", 1, 1, 0},
	{shape{name: "cassandra", external: []string{"Secret cassandra-kdedup"}}, "cassandra", 2, 0, 0},
}

// build is `kubectl kustomize` on an example. What its pods get by envFrom is part of the shape.
func (o overlay) build(t *testing.T) (shape, release) {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(
		filesys.MakeFsOnDisk(), kustomize+"examples/"+o.name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeAll(string(text))
	if err != nil {
		t.Fatal(err)
	}
	s, r := o.shape, release{objects: objects}
	s.env = make(map[string]string)
	for _, from := range workload(t, r).template.Spec.Containers[0].EnvFrom {
		data, made := configMap(r, from.ConfigMapRef.Name)
		if !made {
			t.Errorf("the pods take variables of %s, which is not made", from.ConfigMapRef.Name)
		}
		maps.Copy(s.env, data)
	}
	return s, r
}

func TestTheExamplesForKustomizeAreWhatTheySay(t *testing.T) {
	for _, o := range overlays {
		s, r := o.build(t)
		p := workload(t, r)
		c := loadConfig(t, s, r, p)
		if string(c.Store.Type) != o.store || c.Server.Lookup || len(p.claims) != o.own {
			t.Errorf("%s: store %s, look-ups %t, claims %+v", o.name, c.Store.Type,
				c.Server.Lookup, p.claims)
		}
		if got := find[*appsv1.StatefulSet](r)[0].Spec.Replicas; *got != o.pods {
			t.Errorf("%s: %d pods", o.name, *got)
		}
		path := map[string]string{"embedded": c.Store.Embedded.Path,
			"kafka": c.Store.Kafka.Path}[o.store]
		mounted := slices.ContainsFunc(p.template.Spec.Containers[0].VolumeMounts,
			func(m corev1.VolumeMount) bool { return strings.HasPrefix(path, m.MountPath+"/") })
		if path != "" && !mounted {
			t.Errorf("%s: nothing is mounted for %s", o.name, path)
		}
		for _, policy := range find[*networkingv1.NetworkPolicy](r) {
			if len(policy.Spec.Ingress) != o.in {
				t.Errorf("%s: the policy lets in %+v", o.name, policy.Spec.Ingress)
			}
		}
	}
}
