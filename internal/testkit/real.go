package testkit

import (
	"os"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// Variables that name the real servers, each as "host:port"; Kafka may be a list, with commas.
const (
	KafkaEnv       = "KDEDUP_TEST_KAFKA"
	CassandraEnv   = "KDEDUP_TEST_CASSANDRA"    // a node with paxos_variant v2
	CassandraV1Env = "KDEDUP_TEST_CASSANDRA_V1" // a node with paxos_variant v1, of another cluster
	PostgresEnv    = "KDEDUP_TEST_POSTGRES"     // its superuser postgres needs no password
)

// Kafka returns the brokers of the real Kafka. All tests share it: see Topic.
func Kafka(t testing.TB) []string {
	t.Helper()
	return strings.Split(realServer(t, KafkaEnv), ",")
}

// Cassandra returns the address of the real Cassandra with Paxos v2. All tests share it: see
// Keyspace.
func Cassandra(t testing.TB) string {
	t.Helper()
	return realServer(t, CassandraEnv)
}

// CassandraV1 is Cassandra with Paxos v1, the server's own default.
func CassandraV1(t testing.TB) string {
	t.Helper()
	return realServer(t, CassandraV1Env)
}

// Postgres returns the address of the real PostgreSQL, whose superuser postgres needs no password.
// All tests share its database postgres: see Schema.
func Postgres(t testing.TB) string {
	t.Helper()
	return realServer(t, PostgresEnv)
}

func realServer(t testing.TB, variable string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a real server is not for -short")
	}
	addr := os.Getenv(variable)
	if addr == "" {
		skip.Missing(t, variable+" is not set: run make test, which starts the servers; make "+
			"packages installs what it needs")
	}
	return addr
}
