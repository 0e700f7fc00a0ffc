package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func values(committed, aborted, foreign int) (all []string) {
	for range committed {
		all = append(all, "committed in 1")
	}
	for range aborted {
		all = append(all, "aborted in 2")
	}
	for range foreign {
		all = append(all, "")
	}
	return append(all, "END")
}

func TestARowTellsWhatAClientHandsOut(t *testing.T) {
	for want, o := range map[string]output{
		"hidden": {values: values(committedRecords, 0, 0)},
		"**5 of 10 handed out**, **4 markers as messages**": {
			values: values(committedRecords, 5, 4)},
		"14 of 15 committed ones": {values: values(committedRecords-1, 0, 0)},
		"fails: no":               {err: "no"},
	} {
		if got := o.words(); got != want {
			t.Errorf("%v: got %q, want %q", o.values, got, want)
		}
		if o.right() != (want == "hidden") {
			t.Errorf("%s is right: %v", want, o.right())
		}
	}
}

func TestOnlyTheTableIsWrittenAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	const begin, end = "<!-- the table of tools/readers begins -->\n", "<!-- and ends -->"
	if err := os.WriteFile(file, []byte("head\n"+begin+"old\n"+end+"\ntail\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "head\n" + begin + "new\n" + end + "\ntail\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := replace(filepath.Join("..", "readers", "go.mod"), "new"); err == nil ||
		!strings.Contains(err.Error(), "lacks the marks") {
		t.Errorf("a page without a table: %v", err)
	}
}
