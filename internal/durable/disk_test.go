package durable_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/testkit/powercut"
)

// What a power cut leaves differs with the seed; what was synced is there with each.
func TestAReturnMeansThatAPowerCutChangesNothing(t *testing.T) {
	for seed := range uint64(20) {
		before, after := t.TempDir(), t.TempDir()
		disk, err := powercut.Open(before)
		if err != nil {
			t.Fatal(err)
		}
		deep := filepath.Join("a", "b", "c")
		name := filepath.Join(deep, "file")
		err = errors.Join(durable.MakeDirectories(disk, filepath.Join(before, deep)),
			durable.Replace(disk, filepath.Join(before, name), []byte("old")),
			durable.Replace(disk, filepath.Join(before, name), []byte("new")),
			disk.Restore(after, rand.New(rand.NewPCG(seed, 0))))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(after, name)); err != nil || string(got) != "new" {
			t.Errorf("seed %d: it has %q, %v", seed, got, err)
		}
	}
}

func TestAFileInThePlaceOfADirectoryIsAnError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{name, filepath.Join(name, "below")} {
		if err := durable.MakeDirectories(durable.System{}, directory); err == nil {
			t.Errorf("%s: no error", directory)
		}
	}
}
