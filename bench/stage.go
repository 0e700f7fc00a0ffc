package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/lab/workload"
)

// clearLimit is for taking a stage down, also after an interrupt.
const clearLimit = time.Minute

// programs say where the contestants' programs are.
type programs struct {
	kdedup string
	dir    string // of the hand-written ones
}

func (p programs) contestant(name string) string { return filepath.Join(p.dir, name) }

// settings of kdedup that differ from its defaults, as lines of YAML.
type settings struct{ topic, cassandra []string }

// stage is what one run has for itself: topics, a group, a keyspace, a directory.
type stage struct {
	fleet       *fleet
	database    *database // nil without Cassandra
	programs    programs
	settings    settings
	replication string
	admin       *kadm.Client
	outputs     *kadm.Client // of the cluster with the clean topic; mostly admin
	apart       bool         // that is another one
	name        string
	dir         string
	spec        workload.Spec
	profiler    *profiler
	hurry       bool // do not wait for a quiet machine
}

func (s *stage) input() string      { return s.name }
func (s *stage) output() string     { return s.name + ".clean" }
func (s *stage) group() string      { return s.name + "-dedup" }
func (s *stage) keyspace() string   { return strings.ReplaceAll(s.name, "-", "_") }
func (s *stage) configFile() string { return filepath.Join(s.dir, "kdedup.yaml") }

// profile outlives the stage.
func (s *stage) profile() string { return s.dir + ".pprof" }
func (s *stage) connection() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(strings.Split(s.fleet.kafka, ",")...)}
}

// outputConnection is that of who reads the clean topic.
func (s *stage) outputConnection() []kgo.Opt {
	if s.apart {
		return []kgo.Opt{kgo.SeedBrokers(strings.Split(s.fleet.output, ",")...)}
	}
	return s.connection()
}

// prepare makes the topics and whatever the contestant needs. config is the input's.
func (s *stage) prepare(ctx context.Context, c contestant, config map[string]*string) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	partitions := s.spec.Partitions
	if err := workload.MakeTopic(ctx, s.admin, s.input(), partitions, config); err != nil {
		return err
	}
	if err := workload.MakeTopic(ctx, s.outputs, s.output(), partitions, nil); err != nil {
		return err
	}
	if c.setup == nil {
		return nil
	}
	return c.setup(ctx, s)
}

// clear leaves nothing of the run on the servers. It also runs after an interrupt.
func (s *stage) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearLimit)
	defer cancel()
	errs := []error{s.deleteTopics(ctx), s.fleet.forgetKeys(ctx), os.RemoveAll(s.dir)}
	if s.database != nil {
		errs = append(errs, s.database.drop(ctx, s.keyspace()))
	}
	return errors.Join(errs...)
}

func (s *stage) deleteTopics(ctx context.Context) error {
	err := s.deleteTopicsOn(ctx, s.admin)
	if s.apart {
		err = errors.Join(err, s.deleteTopicsOn(ctx, s.outputs))
	}
	return err
}

func (s *stage) deleteTopicsOn(ctx context.Context, admin *kadm.Client) error {
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("delete the topics of %s: %w", s.name, err)
	}
	var ours []string
	for topic := range topics {
		if strings.HasPrefix(topic, s.name) {
			ours = append(ours, topic)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	answers, err := admin.DeleteTopics(ctx, ours...)
	if err = errors.Join(err, answers.Error()); err != nil {
		return fmt.Errorf("delete the topics of %s: %w", s.name, err)
	}
	_, _ = admin.DeleteGroup(ctx, s.group()) // a contestant that never joined has none
	return nil
}

// setupKdedup writes a configuration of defaults and has kdedup create what it needs.
// setupKdedup has the store by its type, and behind a slash the layout of one in Cassandra.
func setupKdedup(store, delivery string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := os.WriteFile(
			s.configFile(), []byte(s.config(store, delivery)), 0o600,
		); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, s.programs.kdedup, "setup", "-c", s.configFile())
		cmd.Env = withoutSettings(os.Environ())
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kdedup setup: %w\n%s", err, out)
		}
		return nil
	}
}

// keepersSecret is for processes on one machine.
const keepersSecret = "0123456789abcdef0123456789abcdef"

func (s *stage) config(store, delivery string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("kafka:")
	line("  brokers: [%s]", s.fleet.kafka)
	if s.apart {
		line("  output: {brokers: [%s]}", s.fleet.output)
	}
	line("server: %s", s.profiler.server())
	line("store:")
	kind, layout, _ := strings.Cut(store, "/")
	line("  type: %s", kind)
	line("  embedded: {path: %q}", filepath.Join(s.dir, "data"))
	line("  kafka: {path: %q}", filepath.Join(s.dir, "index"))
	if layout == "keepers" {
		line("  keepers: {keep: shared, listen: '127.0.0.1:0', secret: %s}", keepersSecret)
		layout = ""
	}
	line("  redis: {addresses: [%s]}", s.fleet.redis)
	line("  cassandra:")
	line("    hosts: [%s]", s.fleet.cassandra)
	line("    layout: %s", cmp.Or(layout, "rows"))
	line("    log: {path: %q}", filepath.Join(s.dir, "index"))
	line("    keyspace: %s", s.keyspace())
	line("    replication: %q", s.replication)
	for _, setting := range s.settings.cassandra {
		line("    %s", setting)
	}
	line("topics:")
	line("  - input: %s", s.input())
	line("    output: %s", s.output())
	line("    consumer_group: %s", s.group())
	line("    delivery: %s", delivery)
	line("    message_id: {from: header, name: %s}", workload.IDHeader)
	line("    dead_letter_topic: %s.dlq", s.name)
	for _, setting := range s.settings.topic {
		line("    %s", setting)
	}
	return b.String()
}
