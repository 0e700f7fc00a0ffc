// Package goreleaser checks .goreleaser.yaml with goreleaser's own types. It is a module of its
// own, so that nothing else takes goreleaser for a dependency; only the package with the types is
// compiled.
package goreleaser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

const file = "../../.goreleaser.yaml"

// Load refuses what it does not know.
func TestEveryKeyIsOneOfGoreleaser(t *testing.T) {
	project, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if project.ProjectName != "kdedup" || len(project.Builds) != 1 ||
		len(project.DockersV2) != 1 || len(project.NFPMs) != 1 || len(project.SBOMs) != 1 ||
		len(project.Signs) != 1 || len(project.DockerSigns) != 1 {
		t.Errorf("got %+v", project)
	}
}

func TestAnUnknownKeyIsRefused(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, append(text, "checksums: {}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(wrong); err == nil || !strings.Contains(err.Error(), "checksums") {
		t.Errorf("got %v", err)
	}
}
