package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheShellIsOfferedTheTopicsOfTheFile(t *testing.T) {
	path := write(t, []string{"127.0.0.1:1"}, ordersTopic+strings.ReplaceAll(ordersTopic, "orders",
		"payments"))
	bad := filepath.Join(t.TempDir(), "none.yaml")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"id", "lookup", "-c", path, "--topic", ""}, "orders\npayments\n:4\n"},
		{[]string{"bench", "claims", "--config", path, "--topic", ""}, "orders\npayments\n:4\n"},
		{[]string{"id", "lookup", "-c", bad, "--topic", ""}, ":4\n"},
		{[]string{"version", "--format", ""}, "text\njson\n:4\n"},
		{[]string{"run", "-c", ""}, "yaml\nyml\n:8\n"},
	} {
		code, text := kdedup(t.Context(), append([]string{"__complete"}, c.args...)...)
		if code != 0 || !strings.HasPrefix(text, c.want) {
			t.Errorf("%v: %d: %s", c.args, code, text)
		}
	}
}

func TestThereIsAScriptForEachShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, text := kdedup(t.Context(), "completion", shell); code != 0 ||
			!strings.Contains(text, "__complete") {
			t.Errorf("%s: %d: %.200s", shell, code, text)
		}
	}
}

func TestEachCommandHasAManualPage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795255200")
	directory := filepath.Join(t.TempDir(), "man")
	if code, text := kdedup(t.Context(), "man", directory); code != 0 {
		t.Fatal(text)
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"kdedup", "kdedup-run", "kdedup-id-lookup",
		"kdedup-bench-pipeline", "kdedup-version"} {
		if !slices.Contains(files, filepath.Join(directory, page+".1")) {
			t.Errorf("%s has no page", page)
		}
	}
	text, err := os.ReadFile(filepath.Join(directory, "kdedup-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"1" "Nov 2026"`, "SIGHUP", `\fB-c\fP, \fB--config\fP`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}
