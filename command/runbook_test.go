package command

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var runbookBlock = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```")

// runbookBlocks are the runbook's blocks of a language.
func runbookBlocks(t *testing.T, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range runbookBlock.FindAllStringSubmatch(string(text), -1) {
		if block[1] == language {
			blocks = append(blocks, block[2])
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("the runbook has no blocks of %s", language)
	}
	return blocks
}

// runbookQueries are for a real Prometheus, see TestNoPanelIsEmpty.
func runbookQueries(t *testing.T) []string {
	t.Helper()
	return runbookBlocks(t, "promql")
}

// runbookCommands are the lines of the runbook that call kdedup.
func runbookCommands(t *testing.T) (lines []string) {
	t.Helper()
	for _, block := range runbookBlocks(t, "sh") {
		for line := range strings.Lines(block) {
			if strings.HasPrefix(line, "kdedup ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

func TestTheRunbooksCommandsExist(t *testing.T) {
	lines := runbookCommands(t)
	if len(lines) == 0 {
		t.Fatal("the runbook has no commands")
	}
	for _, line := range lines {
		cmd, args, err := newRoot().Find(strings.Fields(line)[1:])
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if cmd.HasSubCommands() {
			t.Errorf("%s: a command of %s is missing", line, cmd.Name())
		}
	}
}
