package deploy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	workflowFile     = "../.github/workflows/release.yaml"
	testWorkflowFile = "../.github/workflows/test.yaml"
)

// workflow is what makes a release.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Steps       []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

func loadWorkflow(t *testing.T) (w workflow) {
	t.Helper()
	readYAML(t, workflowFile, &w)
	return w
}

// A tag of an action can be moved to another commit, and then it has the rights of the workflow.
func TestActionsAreNamedByCommit(t *testing.T) {
	pinned := regexp.MustCompile(`uses: [\w./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	uses := 0
	for line := range strings.Lines(read(t, workflowFile) + read(t, testWorkflowFile)) {
		if strings.Contains(line, "uses:") {
			uses++
			if !pinned.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%q names no commit and its version", strings.TrimSpace(line))
			}
		}
	}
	if uses == 0 {
		t.Error("no action is used")
	}
}

func TestOnlyTheJobOfAReleaseHasRights(t *testing.T) {
	w := loadWorkflow(t)
	if w.Permissions == nil || len(w.Permissions) != 0 || len(w.Jobs) != 1 {
		t.Errorf("rights %v of %d jobs", w.Permissions, len(w.Jobs))
	}
	for _, right := range []string{"attestations", "contents", "id-token", "packages"} {
		if w.Jobs["release"].Permissions[right] != "write" {
			t.Errorf("the job may not write %s", right)
		}
	}
}

// with returns what each step that uses an action gives to it.
func (w workflow) with(action string) (all []map[string]string) {
	for _, s := range w.Jobs["release"].Steps {
		if strings.HasPrefix(s.Uses, action+"@") {
			all = append(all, s.With)
		}
	}
	return all
}

// The image is built with the same Go, and goreleaser is the one whose types read the recipe.
func TestAReleaseIsMadeByTheVersionsThatAreTested(t *testing.T) {
	w := loadWorkflow(t)
	goVersion := w.with("actions/setup-go")[0]["go-version"]
	if !strings.Contains(read(t, "../Dockerfile"), "FROM golang:"+goVersion) {
		t.Errorf("the workflow has Go %s, the Dockerfile another", goVersion)
	}
	version := w.with("goreleaser/goreleaser-action")[0]["version"]
	if !strings.Contains(read(t, "goreleaser/go.mod"), "goreleaser/v2 "+version+"\n") {
		t.Errorf("the workflow has goreleaser %s, deploy/goreleaser another", version)
	}
}

// The chart that a release pushes asks for the image of the same version.
func TestAReleasePushesItsChart(t *testing.T) {
	var runs strings.Builder
	for _, s := range loadWorkflow(t).Jobs["release"].Steps {
		runs.WriteString(s.Run)
	}
	for _, want := range []string{
		`helm package charts/kdedup --version "$VERSION" --app-version "$VERSION"`,
		`helm push "kdedup-$VERSION.tgz" oci://ghcr.io/kdedup/charts`,
	} {
		if !strings.Contains(runs.String(), want) {
			t.Errorf("no step runs %s", want)
		}
	}
	if !strings.Contains(read(t, "../charts/kdedup/README.md"),
		"oci://ghcr.io/kdedup/charts/kdedup") {
		t.Error("the chart's README does not say where a release has it")
	}
}

// signing is how goreleaser signs.
type signing struct {
	Cmd, Artifacts, Signature string
	Args                      []string
}

func TestWhatAReleaseMakesIsSignedAndAttested(t *testing.T) {
	var recipe struct {
		Checksum struct {
			NameTemplate string `yaml:"name_template"`
		}
		Signs        []signing
		DockerSigns  []signing `yaml:"docker_signs"`
		DockerDigest struct {
			NameTemplate string `yaml:"name_template"`
		} `yaml:"docker_digest"`
	}
	readYAML(t, "../.goreleaser.yaml", &recipe)
	if len(recipe.Signs) != 1 || recipe.Signs[0].Artifacts != "checksum" ||
		recipe.Signs[0].Cmd != "cosign" || len(recipe.DockerSigns) != 1 ||
		!slices.Contains(recipe.DockerSigns[0].Args, "${artifact}@${digest}") {
		t.Errorf("signed are %+v and %+v", recipe.Signs, recipe.DockerSigns)
	}
	var attested []string
	for _, with := range loadWorkflow(t).with("actions/attest-build-provenance") {
		attested = append(attested, strings.Replace(with["subject-checksums"],
			"${{ steps.version.outputs.plain }}", "{{ .Version }}", 1))
	}
	for _, made := range []string{recipe.Checksum.NameTemplate, recipe.DockerDigest.NameTemplate} {
		if !slices.Contains(attested, "dist/"+made) {
			t.Errorf("nothing attests to %s, only to %v", made, attested)
		}
	}
	policy := read(t, "../SECURITY.md")
	for _, named := range []string{
		strings.Replace(recipe.Checksum.NameTemplate, "{{ .Version }}", "0.1.0", 1) +
			strings.TrimPrefix(recipe.Signs[0].Signature, "${artifact}"),
		"https://github.com/kdedup/kdedup/.github/workflows/release.yaml@refs/tags/v0.1.0",
	} {
		if !strings.Contains(policy, named) {
			t.Errorf("SECURITY.md does not verify with %s", named)
		}
	}
}

// Who passes the binary on must give the notices with it.
func TestNoticesGoWithTheBinary(t *testing.T) {
	for _, path := range []string{"../Dockerfile", "release.Dockerfile"} {
		if !strings.Contains(read(t, path), "\nCOPY LICENSE THIRD_PARTY_NOTICES.txt /licenses/\n") {
			t.Errorf("%s leaves the licences out of the image", path)
		}
	}
	kept := strings.Fields(read(t, "../.dockerignore"))
	var archives []string
	for _, f := range loadRelease(t).Archives[0].Files {
		archives = append(archives, f.Src)
	}
	for _, file := range []string{"LICENSE", "THIRD_PARTY_NOTICES.txt"} {
		if !slices.Contains(kept, "!"+file) || !slices.Contains(archives, file) ||
			!slices.Contains(loadRelease(t).Dockers[0].ExtraFiles, file) {
			t.Errorf("%s reaches not every build of the image, or no archive", file)
		}
	}
}
