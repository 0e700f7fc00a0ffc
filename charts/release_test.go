package charts

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The tag that the chart asks for by default is one that a release of its appVersion pushes.
func TestTheImageIsThatOfTheRelease(t *testing.T) {
	var recipe struct {
		Dockers []struct{ Images, Tags []string } `yaml:"dockers_v2"`
	}
	if err := yaml.Unmarshal(read(t, "../.goreleaser.yaml"), &recipe); err != nil {
		t.Fatal(err)
	}
	c := loadChart(t)
	var pushed []string
	for _, image := range recipe.Dockers[0].Images {
		for _, tag := range recipe.Dockers[0].Tags {
			pushed = append(pushed,
				image+":"+strings.ReplaceAll(tag, "{{ .Version }}", c.Metadata.AppVersion))
		}
	}
	r := mustRender(t, c, valuesOf(t, "default"))
	for _, p := range r.pods() {
		if image := p.template.Spec.Containers[0].Image; !slices.Contains(pushed, image) {
			t.Errorf("%s runs %s, a release pushes %v", p.owner.GetName(), image, pushed)
		}
	}
}
