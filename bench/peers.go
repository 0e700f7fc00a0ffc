package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// peers are other systems that people use for the same purpose. They run only when they are named,
// or in the mode peers: `make bench-peers` builds them, which takes Java 17, Maven and some
// minutes. Each is tuned for speed as far as its manual goes; what was set is in its title, in
// peers/java, or below.
var peers = []contestant{
	{
		name: "camel", title: "Apache Camel 4.18, `CassandraIdempotentRepository`, 8 consumers, " +
			"at least once (a fifth of the records)",
		needs: needs{cassandra: true}, setup: createKeyspace, command: camel, divided: 5,
		peer: true, assigned: javaAssigned,
	},
	{
		name: "streams", title: "Kafka Streams 4.3, `exactly_once_v2`, repartitioned by ID, " +
			"RocksDB window store, 2 threads",
		command: streams, peer: true, assigned: javaAssigned,
	},
	{
		name:  "bento",
		title: "Bento 1.10, `dedupe` with a Redis cache, 64 threads, unordered, at least once",
		needs: needs{redis: true}, setup: setupBento(64), command: bento, peer: true,
		assigned: bentoAssigned,
	},
	{
		name:  "bento-ordered",
		title: "Bento 1.10, `dedupe` with a Redis cache, 1 thread, in order, at least once",
		needs: needs{redis: true}, setup: setupBento(1), command: bento, peer: true,
		assigned: bentoAssigned,
	},
	{
		name: "flink-hashmap",
		title: "Flink SQL 2.2, `ROW_NUMBER()`, exactly-once sink, checkpoint each second, " +
			"state in memory, 2 tasks",
		command: flink("hashmap"), peer: true, assigned: flinkAssigned, alone: true,
	},
	{
		name: "flink-rocksdb",
		title: "Flink SQL 2.2, `ROW_NUMBER()`, exactly-once sink, checkpoint each second, " +
			"RocksDB, 2 tasks",
		command: flink("rocksdb"), peer: true, assigned: flinkAssigned, alone: true,
		killed: true, // told to end, the JVM mostly still stands after a minute
	},
}

const (
	javaAssigned  = "Adding newly assigned partitions" // Kafka's own consumer
	bentoAssigned = "kafka_franz is now active"
	flinkAssigned = "Adding split(s) to reader"
)

// java runs a class of a folder of peers, which has the program as a jar and its libraries in lib.
// The class takes brokers, group, input and output before the other arguments.
func java(s *stage, folder, jar string, options []string, class string, args ...string) []string {
	at := filepath.Join(s.programs.dir, "peers", folder)
	classes := filepath.Join(at, jar) + ":" + filepath.Join(at, "lib", "*")
	return slices.Concat([]string{"java"}, options, []string{"-cp", classes, class,
		s.fleet.kafka, s.group(), s.input(), s.output()}, args)
}

func peer(s *stage, class string, args ...string) []string {
	return java(s, "", "peers.jar", []string{"-Xmx512m"}, class, args...)
}

func camel(s *stage, _ string) []string {
	return peer(s, "Camel", s.fleet.cassandra, s.keyspace(), "8")
}

func streams(s *stage, instance string) []string {
	return peer(s, "Streams", filepath.Join(s.dir, "state-"+instance), "2",
		fmt.Sprint(s.spec.Partitions))
}

// flink goes on at the newest checkpoint in its directory.
func flink(backend string) func(*stage, string) []string {
	// its state is on the heap, and its network buffers are beside it
	options := []string{"-Xmx1g", "--add-opens=java.base/java.util=ALL-UNNAMED"}
	return func(s *stage, _ string) []string {
		return java(s, "flink", "flink.jar", options, "Flink", filepath.Join(s.dir, "flink"),
			backend)
	}
}

// bento logs to the standard output.
func bento(s *stage, _ string) []string {
	return []string{"sh", "-c", `exec "$0" "$@" 1>&2`,
		filepath.Join(s.programs.dir, "peers", "bento"), "-c", s.bentoFile()}
}

func (s *stage) bentoFile() string { return filepath.Join(s.dir, "bento.yaml") }

func setupBento(threads int) func(context.Context, *stage) error {
	return func(_ context.Context, s *stage) error {
		return os.WriteFile(s.bentoFile(), fmt.Appendf(nil, bentoConfig,
			s.fleet.kafka, s.input(), s.group(), threads, s.fleet.redis, s.name, s.output()), 0o600)
	}
}

// bentoConfig takes brokers, input, group, threads, Redis, prefix and output.
const bentoConfig = `
http: {enabled: false}
input:
  kafka_franz:
    seed_brokers: [%[1]q]
    topics: [%[2]q]
    consumer_group: %[3]q
    start_from_oldest: true
    checkpoint_limit: 20000
    commit_period: 100ms
    batching: {count: 1000, period: 10ms}
pipeline:
  threads: %[4]d
  processors:
    - dedupe: {cache: seen, key: '${! meta("message-id") }', drop_on_err: false}
cache_resources:
  - label: seen
    redis: {url: "redis://%[5]s", prefix: "%[6]s:", default_ttl: 168h}
output:
  kafka_franz:
    seed_brokers: [%[1]q]
    topic: %[7]q
    partitioner: manual
    partition: '${! meta("kafka_partition") }'
    metadata: {include_prefixes: ["message-id", "place"]}
    max_in_flight: %[4]d
`
