package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// needs are the servers beside Kafka without which a contestant cannot run. The output is a second
// Kafka, for what is forwarded.
type needs struct{ cassandra, redis, output bool }

func (n needs) and(other needs) needs {
	return needs{n.cassandra || other.cassandra, n.redis || other.redis, n.output || other.output}
}

// server is the name of the store's.
func (n needs) server() string {
	switch {
	case n.cassandra:
		return cassandraServer
	case n.redis:
		return redisServer
	default:
		return ""
	}
}

// contestant is a program that drains the input topic.
type contestant struct {
	name  string // in flags and results
	title string // in tables, with the options that matter
	needs needs
	// makes what the program needs beside its two topics; may be nil
	setup   func(context.Context, *stage) error
	command func(s *stage, instance string) []string
	exact   bool // loses and doubles nothing, or the measurement fails
	ceiling bool // measures the store alone, see Run.measureCeiling
	// runs only if it is named; commits when it likes, so that its records on the clean topic are
	// counted
	peer bool
	// is one process in every run: a second one would be a job of its own, which cleans all again
	alone bool
	// is stopped by SIGKILL, for it does not end when it is told to
	killed bool

	// it gets only this part of the records, as it would take too long otherwise; 0 for all
	divided  int
	assigned string // in the line that it logs when it is given partitions; empty for assignedLine
}

// start runs one process of it.
func (c contestant) start(ctx context.Context, s *stage, instance string) (*process, error) {
	p, err := startProcess(ctx, c.name, cmp.Or(c.assigned, assignedLine), c.command(s, instance)...)
	if err == nil {
		p.killed = c.killed
	}
	return p, err
}

// Names of contestants with which the others are compared.
const (
	kdedupCassandra = "kdedup-cassandra"
	kdedupRedis     = "kdedup-redis"
	kdedupEmbedded  = "kdedup-embedded"
	kdedupKafka     = "kdedup-kafka"
	kdedupKeepers   = "kdedup-kafka-keepers"
	embeddedApart   = "kdedup-embedded-apart"
	kafkaApart      = "kdedup-kafka-apart"
	kdedupLog       = "kdedup-cassandra-log"
)

// contestants are all, in the order of a round.
var contestants = []contestant{
	{
		name: "copy", title: "raw copy, at least once (franz-go, 2 members, polls of 20,000)",
		command: handWritten("copy"),
	},
	{
		name:    "copy-transactions",
		title:   "raw copy in transactions (franz-go, 2 members, polls of 20,000)",
		command: handWritten("copy", "-transactions"),
	},
	{
		name: "lwt", title: "hand-written consumer, `INSERT … IF NOT EXISTS` per record, 256 in " +
			"flight, at least once (gocql, polls of 10,000)",
		needs: needs{cassandra: true}, setup: createSeen,
		command: handWritten("lwt", "-in-flight", "256"),
	},
	{
		name: "redis", title: "hand-written consumer, pipelined `SET NX EX` per record, " +
			"unordered, at least once (go-redis, 2 members, polls of 10,000, pipelines of 1,000)",
		needs: needs{redis: true}, command: handWritten("redis"),
	},
	{
		name: "redis-ordered", title: "hand-written consumer, pipelined " +
			"`SET NX EX` per record, in order, at least once (go-redis)",
		needs: needs{redis: true}, command: handWritten("redis", "-ordered"),
	},
	{
		name: kdedupCassandra, title: "**kdedup, Cassandra, exactly_once**", exact: true,
		needs: needs{cassandra: true}, setup: setupKdedup("cassandra", "exactly_once"),
		command: kdedup("run"),
	},
	{
		name: "kdedup-cassandra-alo", title: "**kdedup, Cassandra, at_least_once**", exact: true,
		needs: needs{cassandra: true}, setup: setupKdedup("cassandra", "at_least_once"),
		command: kdedup("run"),
	},
	{
		name: kdedupLog, title: "**kdedup, claim log in Cassandra, exactly_once**", exact: true,
		needs: needs{cassandra: true}, setup: setupKdedup("cassandra/log", "exactly_once"),
		command: kdedup("run"),
	},
	{
		name: kdedupRedis, title: "**kdedup, Redis, exactly_once**", exact: true,
		needs: needs{redis: true}, setup: setupKdedup("redis", "exactly_once"),
		command: kdedup("run"),
	},
	{
		name: kdedupKafka, title: "**kdedup, claim log in Kafka, exactly_once**", exact: true,
		setup: setupKdedup("kafka", "exactly_once"), command: kdedup("run"),
	},
	{
		name:  kdedupKeepers,
		title: "**kdedup, claim log in Kafka, its shards shared out, exactly_once**", exact: true,
		setup: setupKdedup("kafka/keepers", "exactly_once"), command: kdedup("run"),
	},
	{
		name: kdedupEmbedded, title: "**kdedup, embedded store, exactly_once**", exact: true,
		setup: setupKdedup("embedded", "exactly_once"), command: kdedup("run"),
	},
	{
		name:  kafkaApart,
		title: "**kdedup, claim log in Kafka, exactly_once, onto another cluster**", exact: true,
		needs: needs{output: true}, setup: setupKdedup("kafka", "exactly_once"),
		command: kdedup("run"),
	},
	{
		name: embeddedApart, title: "**kdedup, embedded store, exactly_once, onto another cluster**",
		exact: true, needs: needs{output: true}, setup: setupKdedup("embedded", "exactly_once"),
		command: kdedup("run"),
	},
	{
		name: "kdedup-embedded-alo", title: "**kdedup, embedded store, at_least_once**",
		exact: true,
		setup: setupKdedup("embedded", "at_least_once"), command: kdedup("run"),
	},
	{
		name: "claims", title: "`kdedup bench claims`: the Cassandra store alone, without Kafka",
		ceiling: true,
		needs:   needs{cassandra: true}, setup: setupKdedup("cassandra", "exactly_once"),
		command: kdedupClaims,
	},
}

// choose returns those that a list names, in the order of a round. An empty list names all but the
// peers and those that need a second Kafka.
func choose(list string) ([]contestant, error) {
	if list == "" {
		return slices.DeleteFunc(slices.Clone(contestants), func(c contestant) bool {
			return c.needs.output
		}), nil
	}
	names, all := strings.Split(list, ","), everybody()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c contestant) bool { return c.name == name }) {
			return nil, fmt.Errorf("-only: there is no contestant %q; there are %s", name,
				strings.Join(allNames(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(c contestant) bool {
		return !slices.Contains(names, c.name)
	}), nil
}

func everybody() []contestant { return slices.Concat(peers, contestants) }

func allNames() []string {
	var names []string
	for _, c := range everybody() {
		names = append(names, c.name)
	}
	return names
}

// handWritten is one of the programs in the folder contestants.
func handWritten(program string, more ...string) func(*stage, string) []string {
	return func(s *stage, _ string) []string {
		args := []string{
			s.programs.contestant(program),
			"-brokers", s.fleet.kafka, "-group", s.group(), "-input", s.input(), "-output",
			s.output(),
		}
		switch program {
		case "lwt":
			args = append(args, "-cassandra", s.fleet.cassandra, "-keyspace", s.keyspace())
		case "redis":
			args = append(args, "-redis", s.fleet.redis, "-prefix", s.name+":")
		}
		return append(args, more...)
	}
}

func kdedup(args ...string) func(*stage, string) []string {
	return func(s *stage, instance string) []string {
		return append(append([]string{s.programs.kdedup}, args...), "-c", s.configFile(),
			"--instance", instance)
	}
}

func kdedupClaims(s *stage, instance string) []string {
	return kdedup("bench", "claims", "--json",
		"--ids", fmt.Sprint(s.spec.Records), "--duplicates", fmt.Sprint(s.spec.Duplicates))(s,
		instance)
}
