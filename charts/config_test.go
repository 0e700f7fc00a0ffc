package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kdedup/kdedup/config"
)

// loadConfig reads the configuration as kdedup would in the first of the pods: with its environment
// and its files.
func loadConfig(t *testing.T, s shape, r release, p pods) config.Config {
	t.Helper()
	c, err := config.Load(layOut(t, r, p), environmentOf(s, p))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.UnknownEnv) > 0 {
		t.Errorf("variables that override no setting: %v", c.UnknownEnv)
	}
	return c
}

// environmentOf is what the container sees; a secret is as good as any.
func environmentOf(s shape, p pods) []string {
	var env []string
	for _, e := range p.template.Spec.Containers[0].Env {
		switch {
		case e.ValueFrom == nil:
			env = append(env, e.Name+"="+e.Value)
		case e.ValueFrom.FieldRef != nil:
			env = append(env, e.Name+"="+p.owner.GetName()+"-0")
		default:
			env = append(env, e.Name+"=long-enough-for-every-kind-of-secret")
		}
	}
	for name, value := range s.env {
		env = append(env, name+"="+value)
	}
	return env
}

// layOut writes the files of the pod to a folder, the configuration with paths to match, and
// returns its path. A file that the configuration names but no volume brings is missing there too.
func layOut(t *testing.T, r release, p pods) string {
	t.Helper()
	root, spec := t.TempDir(), p.template.Spec
	text, at := "", ""
	for _, m := range spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || spec.Volumes[i].ConfigMap == nil {
			continue
		}
		if data, ok := configMap(r, spec.Volumes[i].ConfigMap.Name); ok {
			text, at = data["kdedup.yaml"], filepath.Join(m.MountPath, "kdedup.yaml")
		}
	}
	if args := spec.Containers[0].Args; args[len(args)-1] != at {
		t.Fatalf("the arguments are %q and the configuration is at %s", args, at)
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		text = withFiles(t, root, text, m.MountPath)
	}
	path := filepath.Join(root, "kdedup.yaml")
	write(t, path, text)
	return path
}

// withFiles moves a mount to under root and fills it with the files that the text names.
func withFiles(t *testing.T, root, text, mount string) string {
	t.Helper()
	named := regexp.MustCompile(regexp.QuoteMeta(mount) + `/[A-Za-z0-9._/-]+`)
	for _, file := range named.FindAllString(text, -1) {
		write(t, filepath.Join(root, file), "content of "+file)
	}
	return strings.ReplaceAll(text, mount+"/", filepath.Join(root, mount)+"/")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func configMap(r release, name string) (map[string]string, bool) {
	for _, m := range find[*corev1.ConfigMap](r) {
		if m.Name == name {
			return m.Data, true
		}
	}
	return nil, false
}

// readers are the pods that read the configuration: those of the workload and of the setup.
func readers(r release) []pods {
	return slices.DeleteFunc(r.pods(), func(p pods) bool {
		return !slices.Contains(p.template.Spec.Containers[0].Args, "-c")
	})
}

func TestKdedupAcceptsTheConfiguration(t *testing.T) {
	eachShape(t, func(t *testing.T, s shape, r release) {
		for _, p := range readers(r) {
			c := loadConfig(t, s, r, p)
			if want := "0.0.0.0:9480"; c.Server.Listen != want {
				t.Errorf("server.listen is %s, want %s", c.Server.Listen, want)
			}
		}
		p := workload(t, r)
		c := loadConfig(t, s, r, p)
		if want := p.owner.GetName() + "-0"; c.Instance != want {
			t.Errorf("the instance is %s, want %s", c.Instance, want)
		}
		grace := time.Duration(*p.template.Spec.TerminationGracePeriodSeconds) * time.Second
		if margin := grace - c.ShutdownTimeout; margin < 15*time.Second ||
			margin >= 16*time.Second {
			t.Errorf("the grace period is %v, shutdown_timeout %v", grace, c.ShutdownTimeout)
		}
	})
}

func TestValuesReachKdedupUnchanged(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "embedded"))
	topic := loadConfig(t, shape{}, r, workload(t, r)).Topics[0]
	if topic.FetchBytes != 1<<30 || topic.TTL != 36*time.Hour || topic.Mode != config.ModeObserve {
		t.Errorf("fetch_bytes %d, ttl %v, mode %s", topic.FetchBytes, topic.TTL, topic.Mode)
	}
}

func TestTheGracePeriodFollowsTheShutdownTimeout(t *testing.T) {
	for text, want := range map[string]int64{
		"1s": 16, "30s": 45, "1m30s": 105, "90000ms": 105, "1.5m": 105, "1500ms": 17, "1d": 86415,
		"1d1h": 90015, "2000000us": 17,
	} {
		r := mustRender(t, loadChart(t), with(t, "default", "config: {shutdown_timeout: "+text+"}"))
		if got := *workload(t, r).template.Spec.TerminationGracePeriodSeconds; got != want {
			t.Errorf("%s: got %d s, want %d s", text, got, want)
		}
	}
}

func TestTheEmbeddedStoreIsOnItsVolume(t *testing.T) {
	for _, name := range []string{"default", "embedded"} {
		r := mustRender(t, loadChart(t), with(t, name, "config: {store: {type: embedded}}"))
		p := workload(t, r)
		if len(p.claims) != 1 || *p.claims[0].Spec.Resources.Requests.Storage() != mustQuantity(t,
			name) {
			t.Fatalf("%s: claims %+v", name, p.claims)
		}
		path, mounted := loadConfig(t, shape{}, r, p).Store.Embedded.Path, false
		for _, m := range p.template.Spec.Containers[0].VolumeMounts {
			inside := strings.HasPrefix(path, m.MountPath+"/") ||
				strings.Contains(path, m.MountPath+"/")
			mounted = mounted || m.Name == p.claims[0].Name && !m.ReadOnly && inside
		}
		if !mounted {
			t.Errorf("%s: %s is not on the volume", name, path)
		}
	}
	r := mustRender(t, loadChart(t), valuesOf(t, "ha"))
	if claims := workload(t, r).claims; len(claims) != 0 {
		t.Errorf("with Cassandra there are claims: %+v", claims)
	}
}

func TestANewConfigurationIsANewPod(t *testing.T) {
	checksum := func(values map[string]any) string {
		r := mustRender(t, loadChart(t), values)
		return workload(t, r).template.Annotations["checksum/config"]
	}
	before := checksum(valuesOf(t, "default"))
	if same := checksum(with(t, "default", "replicas: 1")); before != same {
		t.Errorf("the same configuration has the checksums %s and %s", before, same)
	}
	if after := checksum(with(t, "default", "config: {log: {level: debug}}")); before == after {
		t.Error("another configuration has the same checksum")
	}
}

// Pods that watch their file are replaced only for what they would refuse.
func TestPodsThatWatchTheirFileAreNotReplacedForTopics(t *testing.T) {
	at := func(more string) (checksum, config string) {
		values := with(t, "default", more)
		values["config"].(map[string]any)["reload"] = map[string]any{"watch": true}
		r := mustRender(t, loadChart(t), values)
		data, _ := configMap(r, workload(t, r).owner.GetName())
		return workload(t, r).template.Annotations["checksum/config"], data["kdedup.yaml"]
	}
	checksum, config := at("{}")
	if !strings.Contains(config, "watch: true") {
		t.Errorf("the pods do not watch:\n%s", config)
	}
	for more, replaced := range map[string]bool{
		"config: {log: {level: debug}}":  false,
		"config: {log: {format: json}}":  true,
		"config: {shutdown_timeout: 7s}": true,
		"config: {topics: [{input: a, output: b, consumer_group: c, message_id: {from: key}, " +
			"on_missing_id: drop}]}": false,
	} {
		after, changed := at(more)
		if changed == config {
			t.Errorf("%s changes nothing", more)
		}
		if (after != checksum) != replaced {
			t.Errorf("%s: the pods are replaced is %v", more, !replaced)
		}
	}
	r := mustRender(t, loadChart(t), valuesOf(t, "default"))
	if data, _ := configMap(r, workload(t, r).owner.GetName()); !strings.Contains(
		data["kdedup.yaml"], "watch: false") {
		t.Error("pods that are replaced watch their file as well")
	}
}

func TestLookupsAreOffUnlessTheServerAsksWhoItIs(t *testing.T) {
	for text, want := range map[string]bool{
		"{}":                               false,
		"config: {server: {lookup: true}}": true,
		"config: {server: {auth: {username: operator, password: '${PASSWORD}'}}}":                true,
		"config: {server: {lookup: false, auth: {username: operator, password: '${PASSWORD}'}}}": false,
	} {
		r := mustRender(t, loadChart(t), with(t, "default", text))
		s := shape{env: map[string]string{"PASSWORD": "long-enough"}}
		if c := loadConfig(t, s, r, workload(t, r)); c.Server.Lookup != want {
			t.Errorf("%s: lookup is %t", text, c.Server.Lookup)
		}
	}
}
