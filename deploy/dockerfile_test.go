package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	dockerfileFrom = regexp.MustCompile(`(?m)^FROM (\S+)`)
	goDirective    = regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`)
)

func TestDockerfileNamesVersions(t *testing.T) {
	var bases []string
	for _, match := range dockerfileFrom.FindAllStringSubmatch(read(t, "../Dockerfile"), -1) {
		bases = append(bases, match[1])
	}
	// Distroless has no versions; its tag names the Debian release and the user.
	if len(bases) != 2 || !versionTag.MatchString(bases[0]) ||
		withoutDigest(bases[1]) != "gcr.io/distroless/static-debian12:nonroot" {
		t.Fatalf("base images: %q, want a version of Go and then the distroless image", bases)
	}
	if language := goDirective.FindStringSubmatch(read(t, "../go.mod"))[1]; !strings.HasPrefix(
		bases[0], "golang:"+language+".") {
		t.Errorf("the image is built with %s, but go.mod wants Go %s", bases[0], language)
	}
}

func withoutDigest(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// What .dockerignore leaves out does not reach the build.
func TestDockerBuildGetsAllSources(t *testing.T) {
	testkit.EachRun()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}", "./cmd/kdedup")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	kept := strings.Fields(read(t, "../.dockerignore"))
	for pkg := range strings.FieldsSeq(string(out)) {
		top, _, _ := strings.Cut(strings.TrimPrefix(pkg, "github.com/kdedup/kdedup/"), "/")
		if !slices.Contains(kept, "!"+top) {
			t.Errorf(".dockerignore leaves out %s, which %s is in", top, pkg)
		}
	}
}
