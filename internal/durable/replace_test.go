package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kdedup/kdedup/internal/durable"
)

func TestReplaceLeavesTheNewContentAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(
		name+durable.Suffix, []byte("longer, and left by a crash"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first", "second", ""} {
		if err := durable.Replace(durable.System{}, name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("it has %q, %v; want %q", got, err, content)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

func TestAFailureKeepsTheOldContent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := durable.Replace(durable.System{}, name, []byte("old")); err != nil {
		t.Fatal(err)
	}
	// so that the new one cannot be written
	if err := os.MkdirAll(filepath.Join(name+durable.Suffix, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(durable.System{}, name, []byte("new")); err == nil {
		t.Error("nothing failed")
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "old" {
		t.Errorf("it has %q, %v", got, err)
	}
}
