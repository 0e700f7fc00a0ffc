package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// client is one that applications read with.
type client struct {
	name string
	kind string // the language, and what else is built on it
	in   string // the folder of its program
	set  string // what has it read committed
	// prepare installs it, and command runs it with CLIENT BROKER TOPIC ISOLATION.
	install [][]string
	argv    []string
}

// In what follows {} is the folder for what is installed.
var (
	golang = [][]string{{"go", "build", "-o", "{}/program", "."}}
	python = [][]string{{"python3", "-m", "venv", "{}/python"},
		{"{}/python/bin/pip", "-q", "install", "-r", "requirements.txt"}}
	javascript = [][]string{{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
		"--no-package-lock"}}
	java = [][]string{{"mvn", "-q", "-B", "dependency:copy-dependencies",
		"-DoutputDirectory={}/java"}}
	rust = [][]string{{"cargo", "build", "-q", "--release", "--target-dir", "{}/rust"}}

	goProgram     = []string{"{}/program"}
	pythonProgram = []string{"{}/python/bin/python", "reader.py"}
	nodeProgram   = []string{"node", "reader.mjs"}
)

var clients = []client{
	{"Apache Kafka's client", "Java: Spring, Connect, Spark, Flink", "java",
		"`isolation.level=read_committed`", java,
		[]string{"java", "-cp", "{}/java/*", "Reader.java"}},
	{"franz-go", "Go", "golang", "`kgo.FetchIsolationLevel(kgo.ReadCommitted())`", golang,
		goProgram},
	{"sarama", "Go", "golang", "`Consumer.IsolationLevel = sarama.ReadCommitted`", golang,
		goProgram},
	{"kafka-go", "Go", "golang", "`IsolationLevel: kafka.ReadCommitted`", golang, goProgram},
	{"kafka-python", "Python", "python", "`isolation_level='read_committed'`", python,
		pythonProgram},
	{"aiokafka", "Python", "python", "`isolation_level='read_committed'`", python, pythonProgram},
	{"librdkafka", "C; Python, Go, Node, .NET by Confluent, PHP, Ruby", "python",
		"`isolation.level=read_committed`", python, pythonProgram},
	{"kafkajs", "Node", "javascript", "`readUncommitted: false`", javascript, nodeProgram},
	{"platformatic", "Node: @platformatic/kafka", "javascript", "`isolationLevel: 1`", javascript,
		nodeProgram},
	{"rskafka", "Rust", "rust", "nothing", rust, []string{"{}/rust/release/readers"}},
}

func (c client) prepare(ctx context.Context, work string) error {
	ctx, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	for _, step := range c.install {
		argv := filled(step, work)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = c.in
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, last(string(out)))
		}
	}
	return nil
}

func (c client) command(work string, args ...string) []string {
	return append(filled(c.argv, work), args...)
}

func filled(argv []string, work string) (all []string) {
	for _, arg := range argv {
		all = append(all, filepath.FromSlash(strings.ReplaceAll(arg, "{}", work)))
	}
	return all
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
