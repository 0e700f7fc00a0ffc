package testkit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ReadmeCommand is a command of a README's console blocks, and what stands below it: what it
// prints.
type ReadmeCommand struct{ Line, Want string }

// ReadmeCommands reads the commands of README.md in the test's directory: the lines with "$ " in
// blocks of ```console. Each pair of replacements is an old and a new text.
func ReadmeCommands(t testing.TB, replacements ...string) (commands []ReadmeCommand) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer(replacements...)
	for _, block := range strings.Split(string(text), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if shell, ok := strings.CutPrefix(line, "$ "); ok {
				commands = append(commands,
					ReadmeCommand{Line: replace.Replace(strings.TrimSpace(shell))})
				continue
			}
			if len(commands) == 0 {
				t.Fatalf("README.md: output without a command: %s", line)
			}
			commands[len(commands)-1].Want += line
		}
	}
	if len(commands) == 0 {
		t.Fatal("README.md has no commands")
	}
	return commands
}

// endOfOutput cannot occur in what a command prints.
const endOfOutput = "\x00"

// RunReadme runs the commands in one bash, as a reader does, in a directory and with more variables
// in its environment. What each prints, without what it says on standard error, must be what the
// README says. The shell ends its background jobs when the commands are over.
func RunReadme(t testing.TB, dir string, commands []ReadmeCommand, variables ...string) {
	t.Helper()
	EachRun()
	var script strings.Builder
	// -m: jobs have numbers, and groups
	script.WriteString("set -m\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	for _, c := range commands {
		script.WriteString(c.Line + "\nprintf '\\0'\n")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	shell.Dir, shell.Env, shell.Stderr = dir, append(os.Environ(), variables...), t.Output()
	out, err := shell.Output()
	if err != nil {
		t.Errorf("the shell: %v", err)
	}
	outputs := strings.Split(string(out), endOfOutput)
	if len(outputs) != len(commands)+1 {
		t.Fatalf("%d of %d commands came to their end:\n%q", len(outputs)-1, len(commands), out)
	}
	for i, c := range commands {
		if outputs[i] != c.Want {
			t.Errorf("$ %s\ngot:\n%s\nwant:\n%s", c.Line, outputs[i], c.Want)
		}
	}
}
