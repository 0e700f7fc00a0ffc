package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

func TestTheNoticesAreThoseOfWhatIsLinked(t *testing.T) {
	want, err := generate(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go generate ./deploy/notices (-want +got):\n%s", diff)
	}
}

// Whoever passes the binary on must give this file with it, and nothing more: no source, and no
// fee.
func TestNoLicenceAsksForMoreThanANotice(t *testing.T) {
	asks := regexp.MustCompile(`(?i)GNU (LESSER |AFFERO )?GENERAL PUBLIC LICENSE|` +
		`Mozilla Public License|Business Source License|Server Side Public License|Elastic License|` +
		`Eclipse Public License|Commons Clause`)
	modules, err := linked(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	n := notices{of: make(map[string][]int)}
	for _, m := range modules {
		if err := n.read(m); err != nil {
			t.Fatal(err)
		}
		for _, number := range n.of[m.name] {
			if found := asks.FindString(n.texts[number-1]); found != "" {
				t.Errorf("%s: %s", m.name, found)
			}
		}
	}
}

func TestAModuleWithoutALicenceIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"README.md", "license.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("MIT"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := render([]module{{"example.com/m v1", dir, []string{dir}}})
	if err == nil || !strings.Contains(err.Error(), "example.com/m v1 has no file") {
		t.Errorf("got %v", err)
	}
}

// What a module copied keeps its own terms, and equal texts stand there once.
func TestTextsOfCopiedCodeAreFound(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "internal", "copied")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(dir, "LICENSE"): "ours\r\n", filepath.Join(inner, "COPYING.txt"): "theirs",
		filepath.Join(inner, "NOTICE"): "ours\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := notices{of: make(map[string][]int)}
	if err := n.read(module{"m", dir, []string{inner}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ours", "theirs"}, n.texts); diff != "" {
		t.Error(diff)
	}
}
