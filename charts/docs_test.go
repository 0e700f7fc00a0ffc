package charts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var documents = []string{"../docs/kubernetes.md", "../docs/recipes/kubernetes.md",
	"kdedup/README.md"}

var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// blocks are the parts of the documents in a language; the empty one is for commands.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	var found []string
	for _, path := range documents {
		for _, match := range fenced.FindAllStringSubmatch(string(read(t, path)), -1) {
			if match[1] == language {
				found = append(found, match[2])
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("the documents have no block in %q", language)
	}
	return found
}

// documented is what the documents' own words declare as given from outside.
var documented = shape{name: "documents", env: map[string]string{"KAFKA_PASSWORD": "long-enough"}}

func TestDocumentedValuesInstall(t *testing.T) {
	for _, block := range blocks(t, "yaml") {
		if strings.Contains(block, "\nkind: ") && strings.Contains(block, "apiVersion: ") {
			continue
		}
		t.Run(firstKey(block), func(t *testing.T) {
			values := documentedValues(t, block)
			r := mustRender(t, loadChart(t), values)
			if values["configFrom"] != nil { // the chart does not have the file
				return
			}
			for _, p := range readers(r) {
				loadConfig(t, documented, r, p)
			}
		})
	}
}

func firstKey(block string) string {
	var all map[string]any
	_ = yaml.Unmarshal([]byte(block), &all) // the subtest reports it
	return strings.Join(slices.Sorted(maps.Keys(all)), ",")
}

// documentedValues are a block alone if it has a configuration, otherwise on top of one that can
// scale.
func documentedValues(t *testing.T, block string) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(block), &values); err != nil {
		t.Fatal(err)
	}
	if values["config"] != nil {
		return values
	}
	return loader.MergeMaps(scalable(t), values)
}

func scalable(t *testing.T) map[string]any {
	t.Helper()
	return with(t, "default", `config:
  store: {type: cassandra, cassandra: {hosts: [cassandra]}}
  kafka: {sasl: {mechanism: plain, username: kdedup, password: "${KAFKA_PASSWORD}"}}`)
}

func TestDocumentedObjectsAreValid(t *testing.T) {
	for _, block := range blocks(t, "yaml") {
		if !strings.Contains(block, "\nkind: ") {
			continue
		}
		objects, err := decodeAll(block)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, p := range (release{objects: objects}).pods() {
			checkSidecar(t, release{objects: objects}, p)
		}
	}
}

// checkSidecar looks at a pod of an application whose first init container is kdedup.
func checkSidecar(t *testing.T, r release, p pods) {
	t.Helper()
	sidecar := p.template.Spec.InitContainers[0]
	if sidecar.RestartPolicy == nil ||
		*sidecar.RestartPolicy != corev1.ContainerRestartPolicyAlways ||
		!isConfined(sidecar.SecurityContext) {
		t.Errorf("the sidecar restarts %v and has the rights %+v", sidecar.RestartPolicy,
			sidecar.SecurityContext)
	}
	for key, value := range p.selector {
		if p.template.Labels[key] != value {
			t.Errorf("%s does not select its pods by %s", p.owner.GetName(), key)
		}
	}
	if get := sidecar.LivenessProbe.HTTPGet; get.Path != "/healthz" ||
		get.Port.String() != sidecar.Ports[0].Name {
		t.Errorf("the liveness probe asks %+v", get)
	}
	p.template.Spec.Containers = p.template.Spec.InitContainers
	c := loadConfig(t, documented, r, p)
	if want := fmt.Sprintf("0.0.0.0:%d", sidecar.Ports[0].ContainerPort); c.Server.Listen != want {
		t.Errorf("server.listen is %s, want %s", c.Server.Listen, want)
	}
	if grace := *p.template.Spec.TerminationGracePeriodSeconds; grace < int64(
		c.ShutdownTimeout.Seconds())+15 {
		t.Errorf("the grace period of %d s does not hold shutdown_timeout %v and 15 s", grace,
			c.ShutdownTimeout)
	}
}

var (
	setFlag    = regexp.MustCompile(`--set ([^ ]+)`)
	subcommand = regexp.MustCompile(`(?:-- |^|\x60)kdedup ([a-z]+)`)
	chartPath  = regexp.MustCompile(`helm (?:install|upgrade) \S+ (\S+)`)
)

// commands are the lines of the documents' commands, and of the notes.
func commands(t *testing.T) []string {
	t.Helper()
	lines := strings.Split(strings.Join(blocks(t, ""), "\n"), "\n")
	for _, s := range shapes {
		lines = append(lines, strings.Split(mustRender(t, loadChart(t), valuesOf(t, s.name)).notes,
			"\n")...)
	}
	return lines
}

func TestDocumentedCommandsNameWhatExists(t *testing.T) {
	charts, values := 0, 0
	for _, line := range commands(t) {
		if match := chartPath.FindStringSubmatch(line); match != nil {
			charts++
			if _, err := os.Stat(filepath.Join("..", match[1], "Chart.yaml")); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		for _, match := range setFlag.FindAllStringSubmatch(line, -1) {
			values++
			all := scalable(t)
			if err := strvals.ParseInto(strings.TrimRight(match[1], ",."), all); err != nil {
				t.Errorf("%s: %v", line, err)
			} else if _, err := render(loadChart(t), "kdedup", all); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if charts == 0 || values == 0 {
		t.Errorf("found %d charts and %d values in the commands", charts, values)
	}
}

// The documents' names of objects are those of a release kdedup, and its subcommands exist.
func TestDocumentedNamesExist(t *testing.T) {
	r, err := render(loadChart(t), "kdedup", with(t, "default", "setup: {enabled: true}"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{"deployment/billing": true} // the application of the sidecar
	for _, o := range r.objects {
		there[strings.ToLower(kindOf(o))+"/"+o.GetName()] = true
	}
	text := string(read(t, documents[0]))
	names := regexp.MustCompile(`\b(?:statefulset|deployment|job)/[a-z-]+`).FindAllString(text, -1)
	for _, name := range names {
		if !there[name] {
			t.Errorf("the documents name %s, a release kdedup has %v", name,
				slices.Sorted(maps.Keys(there)))
		}
	}
	sources, err := filepath.Glob("../command/*.go")
	if err != nil || len(sources) == 0 || len(names) == 0 {
		t.Fatalf("%d sources, %d names: %v", len(sources), len(names), err)
	}
	var source strings.Builder
	for _, path := range sources {
		source.Write(read(t, path))
	}
	for _, match := range subcommand.FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`Use: +"` + match[1] + `\b`).MatchString(source.String()) {
			t.Errorf("kdedup has no command %s", match[1])
		}
	}
}
