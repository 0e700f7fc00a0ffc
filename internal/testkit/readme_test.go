package testkit

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheCommandsOfAReadmeRunInOneShell(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	readme := "# Title\n\n```\n$ not this\n```\n```console\n$ x=5; echo start PORT\nstart 80\n$ " +
		"sleep 1000 &\n$ echo $x $NAME\n5 ann\n```\n"
	if err := os.WriteFile("README.md", []byte(readme), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := ReadmeCommands(t, "PORT", "80")
	want := []ReadmeCommand{{"x=5; echo start 80", "start 80\n"}, {"sleep 1000 &", ""},
		{"echo $x $NAME", "5 ann\n"}}
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	RunReadme(t, dir, commands, "NAME=ann")
}

func TestAReadmeThatSaysSomethingElseFailsItsTest(t *testing.T) {
	for name, commands := range map[string][]ReadmeCommand{
		"another output":        {{"echo tea", "coffee\n"}},
		"a shell that ends":     {{"exit 0", ""}, {"echo tea", "tea\n"}},
		"an output left out":    {{"echo tea; echo coffee", "tea\n"}},
		"an output that is not": {{"true", "tea\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			failed := &noting{TB: t}
			func() {
				defer func() { _ = recover() }()
				RunReadme(failed, t.TempDir(), commands)
			}()
			if !failed.failed {
				t.Error("the test passed")
			}
		})
	}
}

// noting is a test that goes on after an error.
type noting struct {
	testing.TB
	failed bool
}

func (n *noting) Errorf(string, ...any) { n.failed = true }
func (n *noting) Fatalf(string, ...any) { n.failed = true; panic("the test ended") }
