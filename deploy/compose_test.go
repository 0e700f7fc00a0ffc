// Package deploy holds what runs kdedup. No container engine is needed to test it: the files are
// read as the engine, Prometheus, Grafana and kdedup would read them.
package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/config"
)

// composed is the project with the named profiles.
func composed(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  root,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(root, "docker-compose.yml")}},
		Environment: types.Mapping{},
	}, loader.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestServices(t *testing.T) {
	always := []string{"cassandra", "grafana", "kafka", "kdedup", "prometheus", "setup", "topics"}
	if diff := cmp.Diff(always, composed(t).ServiceNames()); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	sample := []string{"cassandra", "grafana", "kafka", "kdedup", "producer", "prometheus", "setup",
		"topics"}
	if diff := cmp.Diff(sample, composed(t, "sample").ServiceNames()); diff != "" {
		t.Errorf("services with the profile sample (-want +got):\n%s", diff)
	}
}

// `make pin` adds digests.
var versionTag = regexp.MustCompile(`:v?[0-9]+(\.[0-9]+){2}(@sha256:[0-9a-f]{64})?$`)

func TestImagesHaveVersions(t *testing.T) {
	for name, s := range composed(t, "sample").Services {
		switch {
		case s.Build != nil:
			if s.Build.Context != composed(t).WorkingDir {
				t.Errorf("%s is built from %s, want the top of the repository", name,
					s.Build.Context)
			}
		case !versionTag.MatchString(s.Image):
			t.Errorf("%s has the image %s, want a tag that is a version", name, s.Image)
		}
	}
}

// oneShot services end by themselves.
func oneShot(s types.ServiceConfig) bool { return s.Restart == types.RestartPolicyNo }

func TestServicesAreCheckedOrEnd(t *testing.T) {
	for name, s := range composed(t, "sample").Services {
		checked := s.HealthCheck != nil && len(s.HealthCheck.Test) > 1 && !s.HealthCheck.Disable
		if checked == oneShot(s) {
			t.Errorf("%s: health check: %t, one-shot: %t; want exactly one of them", name, checked,
				oneShot(s))
		}
	}
}

func TestConditionsFit(t *testing.T) {
	services := composed(t, "sample").Services
	for name, s := range services {
		for on, dependency := range s.DependsOn {
			want := types.ServiceConditionHealthy
			if oneShot(services[on]) {
				want = types.ServiceConditionCompletedSuccessfully
			}
			if dependency.Condition != want {
				t.Errorf("%s waits for %s: %s, want %s", name, on, dependency.Condition, want)
			}
		}
	}
}

func TestMountedFilesExist(t *testing.T) {
	for name, s := range composed(t, "sample").Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s mounts %s: %v", name, v.Source, err)
			}
			if !v.ReadOnly {
				t.Errorf("%s may write to %s", name, v.Source)
			}
		}
	}
}

func TestPortsAreOpenOnThisMachineOnly(t *testing.T) {
	for name, s := range composed(t, "sample").Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q, want 127.0.0.1", name, p.Published, p.HostIP)
			}
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// The page has a file for the engine, and the configuration that its kdedup reads.
func TestTheRecipeForComposeFitsTogether(t *testing.T) {
	blocks := yamlBlock.FindAllStringSubmatch(read(t, "../docs/recipes/compose.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d files, want that of the engine and that of kdedup", len(blocks))
	}
	secret := "KAFKA_PASSWORD"
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: t.TempDir(),
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml",
			Content: []byte(blocks[0][1])}},
		Environment: types.Mapping{secret: "secret"},
	}, func(o *loader.Options) { o.SetProjectName("recipe", true) })
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Parse("kdedup.yaml", []byte(blocks[1][1]), []string{secret + "=secret"})
	if err != nil {
		t.Fatal(err)
	}
	instances := map[string]bool{}
	for name, s := range project.Services {
		mounted := s.Volumes[0]
		if got := filepath.Dir(s.Command[2]); got != mounted.Target || !mounted.ReadOnly {
			t.Errorf("%s reads %s, the configuration is mounted at %s", name, got, mounted.Target)
		}
		if got := s.Environment[secret]; got == nil || *got != "secret" {
			t.Errorf("%s does not get %s", name, secret)
		}
		instances[*s.Environment[config.EnvName("instance")]] = true
	}
	if len(instances) != len(project.Services) {
		t.Errorf("instances %v, want one for each service", instances)
	}
	s := project.Services["kdedup"]
	if grace := time.Duration(*s.StopGracePeriod); grace <= c.ShutdownTimeout {
		t.Errorf("stop_grace_period %v is not longer than shutdown_timeout %v", grace,
			c.ShutdownTimeout)
	}
	if port := s.Ports[0]; port.HostIP != "127.0.0.1" ||
		c.Server.Listen != fmt.Sprintf("0.0.0.0:%d", port.Target) {
		t.Errorf("%+v is published, and kdedup listens on %s", port, c.Server.Listen)
	}
}

func TestKdedupInCompose(t *testing.T) {
	c, err := config.Load("compose/kdedup.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	services := composed(t).Services
	s := services["kdedup"]
	if want := "0.0.0.0:9480"; c.Server.Listen != want {
		t.Errorf("server.listen is %s, want %s: Prometheus is in another container",
			c.Server.Listen, want)
	}
	if grace := time.Duration(*s.StopGracePeriod); grace <= c.ShutdownTimeout {
		t.Errorf("stop_grace_period %v is not longer than shutdown_timeout %v", grace,
			c.ShutdownTimeout)
	}
	for _, server := range append(c.Kafka.Brokers, c.Store.Cassandra.Hosts...) {
		host, _, _ := strings.Cut(server, ":")
		if _, ok := services[host]; !ok {
			t.Errorf("the configuration names %s, which is no service", server)
		}
	}
	for _, name := range []string{"kdedup", "setup"} {
		mounted := services[name].Volumes[0]
		if got := services[name].Command[2]; got != mounted.Target {
			t.Errorf("%s reads %s, but the configuration is mounted at %s", name, got,
				mounted.Target)
		}
	}
	if created := "--topic=" + c.Topics[0].Input; !strings.Contains(
		strings.Join(services["topics"].Command, " "), created) {
		t.Errorf("the service topics does not create the input: no %s", created)
	}
}
