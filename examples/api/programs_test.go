package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// language is how the programs of a folder are prepared and run.
type language struct {
	name     string
	needs    [][2]string // programs, and the Debian packages that have them
	prepare  [][]string  // {} is the folder for what is installed, which stays for the next run
	consumer []string
	payments []string

	once sync.Once
	err  error
}

var languages = []*language{
	{
		name:  "python",
		needs: [][2]string{{"python3", "python3-pip"}},
		prepare: [][]string{{"python3", "-m", "pip", "install", "-q", "--no-input",
			"--disable-pip-version-check", "--root-user-action=ignore", "--target", "{}", "-r",
			"requirements.txt"}},
		consumer: []string{"python3", "consumer.py"},
		payments: []string{"python3", "payments.py"},
	},
	{
		name:  "node",
		needs: [][2]string{{"node", "nodejs"}, {"npm", "npm"}},
		prepare: [][]string{
			{"cp", "package.json", "consumer.js", "payments.js", "{}"},
			{"npm", "install", "--prefix", "{}", "--ignore-scripts", "--no-audit", "--no-fund",
				"--no-package-lock", "--prefer-offline", "--loglevel=error"},
		},
		consumer: []string{"node", "{}/consumer.js"},
		payments: []string{"node", "{}/payments.js"},
	},
	{
		name:  "java",
		needs: [][2]string{{"javac", "openjdk-17-jdk-headless"}, {"mvn", "maven"}},
		prepare: [][]string{
			{"mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory={}/jars"},
			{"javac", "-parameters", "-d", "{}/classes", "-cp", "{}/jars/*", "Bodies.java",
				"Consumer.java", "Kdedup.java", "Payments.java"},
		},
		consumer: []string{"java", "-XX:TieredStopAtLevel=1", "-cp", "{}/classes:{}/jars/*",
			"Consumer"},
		payments: []string{"java", "-XX:TieredStopAtLevel=1", "-cp", "{}/classes:{}/jars/*",
			"Payments"},
	},
}

// installed is where a language's packages stay from run to run, like the servers of the tests.
func (l *language) installed(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "kdedup", "api-examples", l.name)
}

const prepareTime = 5 * time.Minute

// ready skips the test if the language cannot be had.
func (l *language) ready(t *testing.T) {
	t.Helper()
	if testing.Short() {
		skip.Missing(t, "-short downloads no packages of other languages")
	}
	for _, program := range l.needs {
		testkit.Program(t, program[0], program[1])
	}
	l.once.Do(func() { l.err = l.install(t) })
	if l.err != nil {
		t.Fatalf("prepare %s: %v", l.name, l.err)
	}
}

// install does nothing if the same files were installed before.
func (l *language) install(t *testing.T) error {
	dir, order := l.installed(t), l.files(t)
	marker := filepath.Join(dir, ".complete")
	if made, err := os.ReadFile(marker); err == nil && bytes.Equal(made, order) {
		return nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), prepareTime)
	defer cancel()
	for _, step := range l.prepare {
		cmd := exec.CommandContext(ctx, step[0], filled(step[1:], dir)...)
		cmd.Dir, cmd.Env = l.name, l.environment(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", step, err, out)
		}
	}
	return os.WriteFile(marker, order, 0o644)
}

// files are what is installed, and by what.
func (l *language) files(t *testing.T) (order []byte) {
	t.Helper()
	order = fmt.Append(nil, l.prepare)
	names, err := filepath.Glob(l.name + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, text...)
	}
	return order
}

func (l *language) environment(t *testing.T) []string {
	return append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+l.installed(t))
}

func filled(argv []string, dir string) (all []string) {
	for _, arg := range argv {
		all = append(all, strings.ReplaceAll(arg, "{}", dir))
	}
	return all
}

// example is a program that runs. What it prints is in the log of the test if that fails.
type example struct {
	cmd *exec.Cmd
	out testkit.Printed
}

func (l *language) start(t *testing.T, argv []string, env ...string) *example {
	t.Helper()
	argv = filled(argv, l.installed(t))
	e := &example{cmd: exec.Command(argv[0], argv[1:]...)}
	e.cmd.Dir, e.cmd.Env = l.name, append(l.environment(t), env...)
	e.cmd.Stdout, e.cmd.Stderr = &e.out, &e.out
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.kill()
		if t.Failed() {
			t.Logf("%v printed:\n%s", argv, e.out.String())
		}
	})
	return e
}

// kill is kill -9. It may be repeated.
func (e *example) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

func TestEachExampleHasFewerThan80Lines(t *testing.T) {
	for _, pattern := range []string{"python/*.py", "node/*.js", "java/*.java"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "\n"); n >= 80 {
				t.Errorf("%s has %d lines", file, n)
			}
		}
	}
}
