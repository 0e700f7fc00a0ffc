package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// Variables that name servers to use instead of starting some.
const (
	kafkaEnv     = "KDEDUP_BENCH_KAFKA"     // brokers, with commas
	outputEnv    = "KDEDUP_BENCH_OUTPUT"    // those of a second cluster
	cassandraEnv = "KDEDUP_BENCH_CASSANDRA" // nodes, with commas
	redisEnv     = "KDEDUP_BENCH_REDIS"     // host:port; keys are left to expire
)

// fleet is the servers of a measurement. An address is empty where there is no such server.
type fleet struct {
	kafka, cassandra, redis string
	output                  string // a second Kafka
	// of what was started, and what else readers of the numbers should know
	versions []string
	stops    []func() error
	// of the servers that were started here as processes, by the names kafkaServer …; of a
	// container there is none
	pids map[string]int
}

// Names of the servers.
const (
	kafkaServer     = "kafka"
	outputServer    = "output"
	cassandraServer = "cassandra"
	redisServer     = "redis"
)

// stopper is a server that was started.
type stopper interface {
	Addr() string
	Stop() error
}

// startFleet starts the servers that are needed and that the environment does not name, with their
// data in dir. What was started is in the fleet also after an error.
func startFleet(ctx context.Context, need needs, dir string, heap heaps) (*fleet, error) {
	f := &fleet{kafka: os.Getenv(kafkaEnv), cassandra: os.Getenv(cassandraEnv),
		redis: os.Getenv(redisEnv), output: os.Getenv(outputEnv), pids: make(map[string]int)}
	var err error
	if f.kafka == "" {
		f.kafka, err = f.started(kafkaServer)(startKafka(ctx, filepath.Join(dir, "kafka"),
			heap.kafka))
		f.versions = append(f.versions, "Kafka "+servers.KafkaVersion()+" ("+heap.kafka+" heap)")
	}
	if err == nil && need.output && f.output == "" {
		f.output, err = f.started(outputServer)(startKafka(ctx, filepath.Join(dir, "output"),
			heap.kafka))
		f.versions = append(f.versions, "a second one")
	}
	if err == nil && need.cassandra && f.cassandra == "" {
		f.cassandra, err = f.started(cassandraServer)(startCassandra(ctx,
			filepath.Join(dir, "cassandra"), heap.cassandra))
		f.versions = append(f.versions, "Cassandra "+servers.CassandraVersion()+" ("+heap.cassandra+
			" heap, Paxos v2)")
	}
	if err == nil && need.redis && f.redis == "" {
		err = f.startRedis(ctx, filepath.Join(dir, "redis"))
	}
	return f, err
}

// heaps are as for -Xmx.
type heaps struct{ kafka, cassandra string }

func (f *fleet) started(name string) func(stopper, error) (string, error) {
	return func(s stopper, err error) (string, error) {
		if err != nil {
			return "", err
		}
		f.stops = append(f.stops, s.Stop)
		if process, ok := s.(interface{ PID() int }); ok {
			f.pids[name] = process.PID()
		}
		return s.Addr(), nil
	}
}

// cpu is what a server took so far; 0 if it is not a process that was started here.
func (f *fleet) cpu(server string) time.Duration {
	pid := f.pids[server]
	if pid == 0 {
		return 0
	}
	took, _ := cpuOf(pid) // a server that ended fails the run by itself
	return took
}

// stop ends what was started.
func (f *fleet) stop() error {
	var errs []error
	for _, stop := range f.stops {
		errs = append(errs, stop())
	}
	f.stops = nil
	return errors.Join(errs...)
}

func hasJava(ctx context.Context) bool {
	_, err := servers.FindJava(ctx)
	if err == nil {
		_, err = servers.FindMaven()
	}
	return err == nil
}

// startKafka prefers a process to a container: nothing then stands between it and its clients.
func startKafka(ctx context.Context, dir, heap string) (stopper, error) {
	// As brokers have it unless told otherwise: all members of a contestant are in the group's
	// first generation. Without it, it is a matter of luck whether the second one waits for a
	// rebalance.
	config := map[string]string{"group.initial.rebalance.delay.ms": "3000"}
	options := servers.KafkaOptions{Dir: dir, Heap: heap, Config: config}
	if hasJava(ctx) {
		return asStopper(servers.StartKafka(ctx, options))
	}
	return asStopper(servers.StartKafkaContainer(ctx, options))
}

func startCassandra(ctx context.Context, dir, heap string) (stopper, error) {
	options := servers.CassandraOptions{Dir: dir, Heap: heap, PaxosVariant: servers.PaxosV2}
	if hasJava(ctx) {
		return asStopper(servers.StartCassandra(ctx, options))
	}
	return asStopper(servers.StartCassandraContainer(ctx, options))
}

// asStopper keeps a nil pointer from becoming a server that is not nil.
func asStopper[S stopper](s S, err error) (stopper, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// startRedis leaves the address empty where the program is missing. Redis keeps its keys in memory
// only: what makes it fastest, and forgets all claims when it ends.
func (f *fleet) startRedis(ctx context.Context, dir string) error {
	program, err := servers.FindRedis()
	if err != nil {
		return nil
	}
	f.redis, err = f.started(redisServer)(asStopper(servers.StartRedis(ctx,
		servers.RedisOptions{Dir: dir})))
	if err != nil {
		return err
	}
	f.versions = append(f.versions, redisVersion(ctx, program)+" (in memory only)")
	return nil
}

// redisVersion makes "Valkey 8.0.1" of "Valkey server v=8.0.1 sha=…", which the program prints.
func redisVersion(ctx context.Context, program string) string {
	// the version is for readers only
	out, _ := exec.CommandContext(ctx, program, "--version").Output()
	name, rest, _ := strings.Cut(string(out), " server v=")
	version, _, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(name + " " + version)
}

// forgetKeys empties the Redis that was started here. Another's is left alone.
func (f *fleet) forgetKeys(ctx context.Context) error {
	if f.redis == "" || os.Getenv(redisEnv) != "" {
		return nil
	}
	client := redis.NewClient(&redis.Options{Addr: f.redis})
	defer client.Close()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty redis: %w", err)
	}
	return nil
}
