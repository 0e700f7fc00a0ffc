package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// state is what there is to prove. Without git its sources have no name, and nothing is remembered.
type state struct {
	sources string // names the content of all files
	seed    uint64 // the commit's
}

func readState(ctx context.Context) state {
	s := state{seed: 1}
	if commit, err := git(ctx, nil, "rev-parse", "HEAD"); err == nil && len(commit) >= 8 {
		if seed, err := strconv.ParseUint(commit[:8], 16, 64); err == nil {
			s.seed = max(1, seed)
		}
	}
	s.sources, _ = tree(ctx) // without it nothing is remembered
	return s
}

// tree is git's name for what the work tree holds now, without touching the index.
func tree(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "kdedup-proof-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	env := append(os.Environ(), "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	if _, err := git(ctx, env, "add", "--all", ":/"); err != nil {
		return "", err
	}
	return git(ctx, env, "write-tree")
}

func git(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = env
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// memory is a file with a line for each turn that has passed.
type memory struct {
	file   string
	prefix string // of the lines about these sources and this seed; empty: remember nothing
	passed map[string]bool
}

// readMemory takes a file that is not there, or cannot be read, for an empty one: then all is
// proven once more.
func readMemory(file, sources string, seed uint64) *memory {
	m := &memory{file: file, passed: make(map[string]bool)}
	if sources == "" {
		return m
	}
	m.prefix = fmt.Sprintf("%s seed %d ", sources, seed)
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if name, ours := strings.CutPrefix(strings.TrimSuffix(line, "\n"), m.prefix); ours {
			m.passed[name] = true
		}
	}
	return m
}

func (m *memory) has(t turn) bool { return m.passed[t.String()] }

func (m *memory) forget() { clear(m.passed) }

// add writes at once, so that a run that is killed has not worked in vain.
func (m *memory) add(t turn) {
	if m.prefix == "" {
		return
	}
	if err := m.write(m.prefix + t.String() + "\n"); err != nil {
		fmt.Fprintln(os.Stderr, "proof: not remembered:", err)
	}
}

func (m *memory) write(line string) error {
	if err := os.MkdirAll(filepath.Dir(m.file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(m.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		_ = f.Close() // the first error tells
		return err
	}
	return f.Close()
}
