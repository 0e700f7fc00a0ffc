package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

// release is what these tests look at of goreleaser's configuration. deploy/goreleaser decodes all
// of it, strictly.
type release struct {
	Before struct{ Hooks []string }
	Builds []struct {
		Main, Binary      string
		Goos, Goarch, Env []string
		Ldflags           []string
		Mod_timestamp     string `yaml:"mod_timestamp"`
	}
	Archives []struct {
		Files []archived
	}
	Nfpms []struct {
		Formats  []string
		Bindir   string
		Contents []struct{ Src, Dst, Type string }
	}
	Sboms   []struct{ Artifacts string }
	Dockers []struct {
		Dockerfile string
		Platforms  []string
		ExtraFiles []string `yaml:"extra_files"`
	} `yaml:"dockers_v2"`
}

// archived is a glob, or a glob and where it goes.
type archived struct{ Src, Dst string }

func (a *archived) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		a.Src = node.Value
		return nil
	}
	type plain archived
	return node.Decode((*plain)(a))
}

func loadRelease(t *testing.T) (r release) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, "../.goreleaser.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAReleaseIsForThreeSystemsAndTwoProcessors(t *testing.T) {
	r := loadRelease(t)
	b := r.Builds[0]
	if diff := cmp.Diff([]string{"linux", "darwin", "windows"}, b.Goos); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"amd64", "arm64"}, b.Goarch); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(
		[]string{"linux/amd64", "linux/arm64"}, r.Dockers[0].Platforms,
	); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(b.Env, "CGO_ENABLED=0") || b.Main != "./cmd/kdedup" ||
		!strings.Contains(b.Ldflags[0],
			"-X github.com/kdedup/kdedup/process/build.version=v") {
		t.Errorf("got %+v", b)
	}
	if r.Sboms[0].Artifacts != "archive" {
		t.Error("archives have no list of components")
	}
}

// What an archive holds is here, or made by a hook before.
func TestAReleaseHoldsWhatItNames(t *testing.T) {
	r := loadRelease(t)
	hooks := strings.Join(r.Before.Hooks, "\n")
	var names []string
	for _, f := range r.Archives[0].Files {
		names = append(names, f.Src)
		if made, isMade := strings.CutPrefix(f.Src, "dist-docs/"); isMade {
			if !strings.Contains(hooks, "dist-docs/"+strings.TrimSuffix(made, "/*")) {
				t.Errorf("no hook makes %s", f.Src)
			}
			continue
		}
		if found, err := filepath.Glob(filepath.Join("..", f.Src)); err != nil || len(found) == 0 {
			t.Errorf("%s names nothing: %v", f.Src, err)
		}
	}
	for _, want := range []string{"LICENSE", "docs/*.md", "dist-docs/completions/*",
		"dist-docs/man/*", "deploy/kdedup.service"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the archive", want)
		}
	}
	for _, hook := range regexp.MustCompile(`go run (\S+)`).FindAllStringSubmatch(hooks, -1) {
		if _, err := os.Stat(filepath.Join("..", hook[1])); err != nil {
			t.Errorf("a hook runs %s: %v", hook[1], err)
		}
	}
}

// What the hooks make before is there in a release only.
func TestAPackageHoldsWhatItNames(t *testing.T) {
	r := loadRelease(t)
	if len(r.Nfpms) != 1 || !slices.Equal(r.Nfpms[0].Formats, []string{"deb", "rpm"}) {
		t.Fatalf("packages: %+v", r.Nfpms)
	}
	hooks := strings.Join(r.Before.Hooks, "\n")
	for _, c := range r.Nfpms[0].Contents {
		if made, is := strings.CutPrefix(c.Src, "dist-docs/"); is {
			folder, _, in := strings.Cut(made, "/")
			if !strings.Contains(hooks, "dist-docs/"+made) &&
				(!in || !strings.Contains(hooks, "dist-docs/"+folder)) {
				t.Errorf("no hook makes %s", c.Src)
			}
			continue
		}
		if c.Type != "dir" {
			if _, err := os.Stat("../" + c.Src); err != nil {
				t.Error(err)
			}
		}
	}
	if unit := read(t, "kdedup.service"); !strings.Contains(unit, "=/usr/local/bin/kdedup ") ||
		!strings.Contains(hooks, "sed s,/usr/local/bin/,"+r.Nfpms[0].Bindir+"/,") {
		t.Error("the unit of a package does not start the binary of the package")
	}
}

// Both images are the same but for where the binary comes from.
func TestTheImageOfAReleaseIsThatOfTheRepository(t *testing.T) {
	last := func(path string) (lines []string) {
		_, stage, _ := strings.Cut(read(t, path), "FROM gcr.io/")
		for line := range strings.Lines(stage) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") &&
				!strings.HasPrefix(line, "COPY") && !strings.HasPrefix(line, "ARG") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if diff := cmp.Diff(last("../Dockerfile"), last("release.Dockerfile")); diff != "" {
		t.Errorf("-repository +release:\n%s", diff)
	}
}

// unit returns the settings of the systemd unit.
func unit(t *testing.T) map[string]string {
	t.Helper()
	settings := make(map[string]string)
	for line := range strings.Lines(read(t, "kdedup.service")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok &&
			!strings.HasPrefix(name, "#") {
			settings[name] = value
		}
	}
	return settings
}

func TestTheUnitGivesAStopTheTimeItNeeds(t *testing.T) {
	u := unit(t)
	stop, err := strconv.Atoi(u["TimeoutStopSec"])
	if err != nil || time.Duration(stop)*time.Second < config.Default().ShutdownTimeout+
		15*time.Second {
		t.Errorf("TimeoutStopSec is %q; shutdown_timeout is %v", u["TimeoutStopSec"],
			config.Default().ShutdownTimeout)
	}
	for name, want := range map[string]string{
		"Type": "notify", "ExecReload": "/bin/kill -HUP $MAINPID", "RestartPreventExitStatus": "2",
		"Restart":     "always", // also after a signal that kdedup does not know
		"DynamicUser": "yes", "ProtectSystem": "strict",
		"ExecStart": "/usr/local/bin/kdedup run -c /etc/kdedup/kdedup.yaml",
	} {
		if u[name] != want {
			t.Errorf("%s is %q, want %q", name, u[name], want)
		}
	}
}

// systemd itself reads the unit, and judges how much it shuts off: 10 is nothing.
func TestSystemdTakesTheUnit(t *testing.T) {
	analyze := testkit.Program(t, "systemd-analyze", "systemd")
	here := filepath.Join(t.TempDir(), "kdedup.service")
	binary, err := exec.LookPath("true") // verify looks for the program
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(read(t, "kdedup.service"), "/usr/local/bin/kdedup", binary, 1)
	if err := os.WriteFile(here, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", here).CombinedOutput(); err != nil ||
		strings.Contains(string(out), "kdedup.service:") {
		t.Errorf("%v: %s", err, out)
	}
	const most = "20" // tenths; it is 16 with systemd 252
	out, err := exec.Command(analyze, "security", "--offline=true", "--json=short",
		"--threshold="+most, here).CombinedOutput()
	if err != nil {
		var checks []struct{ Name, Description, Exposure string }
		_ = json.Unmarshal(out, &checks) // shown as it is otherwise
		t.Errorf("more open than %s of 100: %v: %+v %s", most, err, checks, out)
	}
}
