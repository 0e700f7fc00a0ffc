package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// javaHome is what a server's Java programs need: the program itself, the jars, and a directory for
// everything that the server writes.
type javaHome struct {
	java string
	lib  string
	dir  string // absolute
}

// QuickStart are flags of the JVM that spare the compiler's second stage, which pays only for
// servers that work long and hard. A Cassandra node starts in half the time.
var QuickStart = []string{"-XX:TieredStopAtLevel=1"}

// newJavaHome finds Java, downloads the jars unless they are there, and makes the directory, with
// the server's logging configuration in it.
func newJavaHome(ctx context.Context, name, version, dir, logging string) (*javaHome, error) {
	if dir == "" {
		return nil, errors.New("no Dir in the options")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	java, err := FindJava(ctx)
	if err != nil {
		return nil, err
	}
	lib, err := jars(ctx, name, version)
	if err != nil {
		return nil, err
	}
	config, err := embedded.ReadFile(name + "/" + logging)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &javaHome{java: java, lib: lib, dir: dir},
		os.WriteFile(filepath.Join(dir, logging), config, 0o644)
}

// command runs a Java class in the server's directory. All of the heap is taken at once, as servers
// do.
func (h *javaHome) command(heap string, flags []string, class string, args ...string) *exec.Cmd {
	all := []string{"-Xms" + heap, "-Xmx" + heap, "-XX:+UseG1GC"}
	all = append(all, flags...)
	all = append(all, "-cp", h.dir+string(filepath.ListSeparator)+filepath.Join(h.lib, "*"), class)
	cmd := exec.Command(h.java, append(all, args...)...)
	cmd.Dir = h.dir
	return cmd
}
