package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// release is a server of a version that the other tests do not have, and what is run on it.
type release struct {
	env string // names it to package servers
	// the server that the turn starts, as withservers calls it; empty where the tests start theirs
	with    string
	instead []string // variables that name a server of the usual version
	pkgs    []string
	tests   string
}

// releases are the turns of the proof of that name; docs/install.md and docs/stores.md have the
// table.
var releases = slices.Concat(
	kafka("3.9.2"), kafka("4.4.0"),
	cassandra("4.1.10"), cassandra("6.0-alpha2"),
	redis("valkey-server"),
)

// kafka is a suite, and a short run of the whole: rebalances, refused records, and where the broker
// has it the assignment by the broker.
func kafka(version string) []release {
	r := release{env: servers.KafkaVersionEnv + "=" + version, with: "kafka",
		instead: []string{testkit.KafkaEnv}}
	suite, whole := r, r
	suite.pkgs, suite.tests = []string{"./connect/kafka", "./connect/logreader", "./consumer/...",
		"./fence"}, "/real$"
	whole.pkgs = []string{"./e2e"}
	whole.tests =
		"^(TestRebalancesInMidBatchLoseAndDoubleNothing|TestARecordThatItsTopicRefusesHoldsUpNobody)$"
	if !strings.HasPrefix(version, "3.") {
		whole.tests += "|^TestAssignmentByTheBroker$"
	}
	return []release{suite, whole}
}

func cassandra(version string) []release {
	r := release{
		env: servers.CassandraVersionEnv + "=" + version, with: "cassandra,cassandra-v1",
		instead: []string{testkit.CassandraEnv, testkit.CassandraV1Env},
	}
	suite, whole := r, r
	suite.pkgs, suite.tests = []string{"./dedup/cassandra", "./idempotency/cassandra"}, "."
	whole.pkgs, whole.tests = []string{"./e2e"}, "^TestAKilledProcessLosesNothing$"
	return []release{suite, whole}
}

// redis names a program; the tests start it themselves.
func redis(program string) []release {
	r := release{env: servers.RedisProgramEnv + "=" + program, instead: []string{servers.RedisEnv}}
	suite, whole := r, r
	suite.pkgs, suite.tests = []string{"./dedup/redis", "./idempotency/redis"}, "."
	whole.pkgs, whole.tests = []string{"./e2e"}, "^TestAKilledProcessAndAKilledRedisLoseNothing$"
	return []release{suite, whole}
}

// command starts the server and tests on it. All of the long tests have their turn.
func (r release) command() *exec.Cmd {
	args := []string{"go", "test", "-pgo=off", "-count=1", "-timeout=30m", "-p=1", "-run", r.tests,
		"-race"}
	args = append(args, r.pkgs...)
	if r.with != "" {
		args = append([]string{"bin/withservers", "-with", r.with, "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(r.instead, name)
	})
	cmd.Env = append(cmd.Env, r.env, testkit.ShareEnv+"="+testkit.Shared(1, 1))
	return cmd
}

func (r release) String() string {
	_, version, _ := strings.Cut(r.env, "=")
	return strings.TrimSpace(strings.Split(r.with, ",")[0] + " " + version)
}
