package testkit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMissingProgramSkipsTheTestAndFailsItInCI(t *testing.T) {
	for ci, want := range map[string]outcome{"": {Skipped: true}, "true": {Failed: true}} {
		t.Run("CI="+ci, func(t *testing.T) {
			t.Setenv("CI", ci)
			got := record(t, func(t testing.TB) {
				Program(t, "kdedup-no-such-program", "no-such-package")
			})
			if !strings.Contains(got.Message,
				"make packages installs it (Debian: no-such-package)") {
				t.Errorf("the message does not name the remedy: %q", got.Message)
			}
			got.Message = ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if path := Program(t, "go", "golang"); path == "" {
		t.Error("go is not found")
	}
}
