package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// beforeKeepers is the last commit whose processes know no keepers: each keeps the whole claim log,
// in files of 140 bytes a claim.
const beforeKeepers = "9aaa94254c08"

// earlierBuilds has each commit built once.
var earlierBuilds struct {
	mu     sync.Mutex
	builds map[string]func() (string, error)
}

// earlier is a kdedup of an earlier commit, built from the history of the repository.
func earlier(t *testing.T, commit string) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "git", "cat-file", "-e",
		commit+"^{commit}").Run(); err != nil {
		skip.Missing(t, "git knows no commit "+commit+": run `git fetch --unshallow` in a clone")
	}
	earlierBuilds.mu.Lock()
	if earlierBuilds.builds == nil {
		earlierBuilds.builds = make(map[string]func() (string, error))
	}
	build := earlierBuilds.builds[commit]
	if build == nil {
		build = sync.OnceValues(func() (string, error) { return buildEarlier(commit) })
		earlierBuilds.builds[commit] = build
	}
	earlierBuilds.mu.Unlock()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// buildEarlier leaves the program beside the one that all tests run, which TestMain removes.
func buildEarlier(commit string) (binary string, err error) {
	sources, err := os.MkdirTemp(filepath.Dir(kdedup), "sources-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(sources)) }()
	archive := filepath.Join(sources, "sources.tar")
	binary = filepath.Join(filepath.Dir(kdedup), "kdedup-"+commit)
	for _, step := range [][]string{
		// from the top: what git archives is the folder that it runs in
		{"..", "git", "archive", "--output", archive, commit},
		{sources, "tar", "-xf", archive},
		{sources, "go", "build", "-pgo=off", "-buildvcs=false", "-o", binary, "./cmd/kdedup"},
	} {
		cmd := exec.Command(step[1], step[2:]...)
		cmd.Dir = step[0]
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build kdedup of %s: %v: %w\n%s", commit, step[1:], err, out)
		}
	}
	return binary, nil
}
