package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// module is one that is linked, and the folders of its packages that are.
type module struct {
	name    string // path and version
	dir     string
	folders []string
}

// linked lists the modules of the binary on every system of a release, Go's own library first.
func linked(ctx context.Context, root string) ([]module, error) {
	systems, err := systemsOf(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		return nil, err
	}
	all := make(map[string]module)
	for _, system := range systems {
		packages, err := list(ctx, root, system)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(packages) {
			words := strings.Split(strings.TrimSpace(line), "\t")
			m := all[words[0]]
			m.name, m.dir = words[0], words[1]
			if !slices.Contains(m.folders, words[2]) {
				m.folders = append(m.folders, words[2])
			}
			all[m.name] = m
		}
	}
	goroot, err := output(ctx, root, nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSpace(goroot)
	modules := []module{{"the standard library of Go", dir, []string{dir}}}
	return append(modules, sorted(all)...), nil
}

func sorted(all map[string]module) (modules []module) {
	for _, m := range all {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.name, b.name) })
	return modules
}

// systemsOf are the pairs of GOOS and GOARCH that a release is built for.
func systemsOf(recipe string) (systems [][]string, err error) {
	var release struct {
		Builds []struct{ Goos, Goarch []string }
	}
	text, err := os.ReadFile(recipe)
	if err == nil {
		err = yaml.Unmarshal(text, &release)
	}
	if err != nil {
		return nil, fmt.Errorf("read the recipe of a release: %w", err)
	}
	for _, b := range release.Builds {
		for _, system := range b.Goos {
			for _, arch := range b.Goarch {
				systems = append(systems, []string{"GOOS=" + system, "GOARCH=" + arch})
			}
		}
	}
	return systems, nil
}

// list names module, its folder and the package's, for each package of other people.
func list(ctx context.Context, root string, system []string) (string, error) {
	const format = "{{with .Module}}{{if not .Main}}" +
		"{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
	return output(ctx, root, append(system, "CGO_ENABLED=0"), "list", "-deps", "-f", format,
		"./cmd/kdedup")
}

func output(ctx context.Context, root string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), env...), &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, stderr.Bytes())
	}
	return string(out), nil
}
