package main

import (
	"context"
	"slices"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// kind is a server that tests ask for.
type kind struct {
	name     string
	variable string // under which tests look for its address
}

var kinds = []kind{
	{"kafka", testkit.KafkaEnv},
	{"cassandra", testkit.CassandraEnv},
	{"cassandra-v1", testkit.CassandraV1Env},
	{"postgres", testkit.PostgresEnv},
}

// The ports of each run, if they are free. Go's cache takes the result of a test for still good if
// the test finds its servers under the same addresses.
const (
	kafkaPort       = 21092
	cassandraPort   = 21042
	cassandraV1Port = 21043
	postgresPort    = 21432
)

// server is one that runs: a process or a container.
type server interface {
	Addr() string
	Stop() error
}

// engine is a way to start servers.
type engine struct {
	name  string
	only  []string                    // the servers that it can start; nil: all
	find  func(context.Context) error // nil when it works here, else what is missing
	start func(ctx context.Context, name, dir string) (server, error)
}

var engines = []engine{
	{name: "docker", only: javaServers, find: servers.FindDocker, start: startContainer},
	{name: "java", only: javaServers, find: findJava, start: startProcess},
	{name: "programs", only: []string{"postgres"}, find: findPrograms, start: startProgram},
}

var javaServers = []string{"kafka", "cassandra", "cassandra-v1"}

// divide returns those of the kinds that the engine can start, and the others.
func (e engine) divide(all []kind) (can, cannot []kind) {
	for _, k := range all {
		if e.only == nil || slices.Contains(e.only, k.name) {
			can = append(can, k)
		} else {
			cannot = append(cannot, k)
		}
	}
	return can, cannot
}

func findPrograms(context.Context) error {
	_, err := servers.FindPostgres()
	return err
}

func startProgram(ctx context.Context, _, dir string) (server, error) {
	return started(servers.StartPostgres(ctx, servers.PostgresOptions{Dir: dir,
		Port: servers.FreePort(postgresPort)}))
}

func findJava(ctx context.Context) error {
	if _, err := servers.FindJava(ctx); err != nil {
		return err
	}
	_, err := servers.FindMaven()
	return err
}

func startContainer(ctx context.Context, name, dir string) (server, error) {
	if name == "kafka" {
		return started(servers.StartKafkaContainer(ctx, kafkaOptions(dir)))
	}
	return started(servers.StartCassandraContainer(ctx, cassandraOptions(name, dir)))
}

func startProcess(ctx context.Context, name, dir string) (server, error) {
	if name == "kafka" {
		return started(servers.StartKafka(ctx, kafkaOptions(dir)))
	}
	return started(servers.StartCassandra(ctx, cassandraOptions(name, dir)))
}

func kafkaOptions(dir string) servers.KafkaOptions {
	return servers.KafkaOptions{Dir: dir, Port: servers.FreePort(kafkaPort)}
}

func cassandraOptions(name, dir string) servers.CassandraOptions {
	if name == "cassandra-v1" { // only few tests, and none with much load
		return servers.CassandraOptions{Dir: dir, PaxosVariant: servers.PaxosV1, Heap: "512m",
			Port: servers.FreePort(cassandraV1Port)}
	}
	return servers.CassandraOptions{Dir: dir, PaxosVariant: servers.PaxosV2,
		Port: servers.FreePort(cassandraPort)}
}

// started keeps a nil pointer from becoming a server that is not nil.
func started[S server](s S, err error) (server, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
