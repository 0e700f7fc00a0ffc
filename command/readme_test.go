package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheReadmesConfigurationIsValid(t *testing.T) {
	blocks := yamlBlock.FindAllStringSubmatch(readme(t), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no configuration")
	}
	for _, block := range blocks {
		path := filepath.Join(t.TempDir(), "kdedup.yaml")
		if err := os.WriteFile(path, []byte(block[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, text := kdedup(t.Context(), "validate", "--offline", "-c", path); code != 0 {
			t.Errorf("%s\n%s", text, block[1])
		}
	}
}

var (
	commandWord = regexp.MustCompile(`(?m)^kdedup ([a-z]+)`)
	pageLink    = regexp.MustCompile(`\]\(([A-Za-z][A-Za-z0-9_/.-]*)\)`)
)

func TestTheReadmesCommandsAndPagesExist(t *testing.T) {
	text := readme(t)
	known := make(map[string]bool)
	for _, cmd := range newRoot().Commands() {
		known[cmd.Name()] = true
	}
	for _, match := range commandWord.FindAllStringSubmatch(text, -1) {
		if !known[match[1]] {
			t.Errorf("there is no command kdedup %s", match[1])
		}
	}
	for _, match := range pageLink.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", match[1])); err != nil &&
			!strings.Contains(match[1], "://") {
			t.Errorf("a link to nowhere: %v", err)
		}
	}
}
