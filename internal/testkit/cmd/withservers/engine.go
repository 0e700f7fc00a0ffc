package main

import (
	"context"

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
}

// server is one that runs: a process or a container.
type server interface {
	Addr() string
	Stop() error
}

// engine is a way to start servers.
type engine struct {
	name  string
	find  func(context.Context) error // nil when it works here, else what is missing
	start func(ctx context.Context, name, dir string) (server, error)
}

var engines = []engine{
	{name: "docker", find: servers.FindDocker, start: startContainer},
	{name: "java", find: findJava, start: startProcess},
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
		return started(servers.StartKafkaContainer(ctx, servers.KafkaOptions{Dir: dir}))
	}
	return started(servers.StartCassandraContainer(ctx, cassandraOptions(name, dir)))
}

func startProcess(ctx context.Context, name, dir string) (server, error) {
	if name == "kafka" {
		return started(servers.StartKafka(ctx, servers.KafkaOptions{Dir: dir}))
	}
	return started(servers.StartCassandra(ctx, cassandraOptions(name, dir)))
}

func cassandraOptions(name, dir string) servers.CassandraOptions {
	if name == "cassandra-v1" { // only few tests, and none with much load
		return servers.CassandraOptions{Dir: dir, PaxosVariant: servers.PaxosV1, Heap: "512m"}
	}
	return servers.CassandraOptions{Dir: dir, PaxosVariant: servers.PaxosV2}
}

// started keeps a nil pointer from becoming a server that is not nil.
func started[S server](s S, err error) (server, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
