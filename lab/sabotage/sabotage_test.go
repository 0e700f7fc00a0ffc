// Package sabotage_test breaks the product on purpose, one guard at a time, and sees to it that the
// tests notice. A check that cannot fail proves nothing.
package sabotage_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// root is the module's directory, seen from here.
const root = "../.."

// sabotage is one guard that is taken away.
type sabotage struct {
	guard    string // what is switched off
	file     string
	old, new string // old occurs once in the file
	caughtBy string // package and tests that must fail, as arguments of go test
	tests    string
	server   func(testing.TB) string // that they need; nil: none
}

var sabotages = slices.Concat(ofLane, ofIDs, ofStores, ofClaimLog, ofProcess)

// It builds the tests once per case, so it is a proof; see TestEveryGuardIsFound for every change.
func TestEverySabotageIsCaught(t *testing.T) {
	for _, s := range testkit.Share(t, sabotages, nil) {
		t.Run(s.guard, func(t *testing.T) {
			if s.server != nil {
				s.server(t)
			}
			out, err := s.test(t)
			switch {
			case err == nil:
				t.Errorf("%s passes without it:\n%s", s.tests, out)
			// A test that waits for ever without the guard has failed, too.
			case !strings.Contains(out, "--- FAIL: ") &&
				!strings.Contains(out, "panic: test timed out"):
				t.Errorf("%s did not run: %v\n%s", s.tests, err, out)
			}
		})
	}
}

// A change of the product that moves a guard moves it here, too.
func TestEveryGuardIsFound(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.guard, func(t *testing.T) { s.broken(t, filepath.Join(root, s.file)) })
	}
}

func TestTheDocumentsNameEverySabotage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sabotages {
		row := "| " + s.guard + " | `" + strings.TrimPrefix(s.caughtBy, "./") + "` " + s.tests +
			" |"
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/testing.md lacks the row\n%s", row)
		}
	}
}

// test runs the tests on the broken product. The sources stay as they are: the Go tool is given the
// broken file in place of the true one.
func (s sabotage) test(t *testing.T) (out string, err error) {
	t.Helper()
	testkit.EachRun()
	path, err := filepath.Abs(filepath.Join(root, s.file))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: s.broken(t, path)}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-count=3", "-failfast",
		"-vet=off", "-timeout=1m", "-run", "^"+s.tests, s.caughtBy)
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// broken writes the file without the guard and returns where.
func (s sabotage) broken(t *testing.T, path string) string {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), s.old); n != 1 {
		t.Fatalf("%s holds %q %d times, want once", s.file, s.old, n)
	}
	broken := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(
		broken, []byte(strings.Replace(string(source), s.old, s.new, 1)), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	return broken
}
