package servers

import (
	"cmp"
	"os"
	"strings"
)

// The environment may name other versions of the servers, and another program for Redis: the matrix
// of make proof does.
const (
	KafkaVersionEnv     = "KDEDUP_KAFKA_VERSION"
	CassandraVersionEnv = "KDEDUP_CASSANDRA_VERSION"
	RedisProgramEnv     = "KDEDUP_REDIS_PROGRAM"
)

// The versions that the poms name; a test compares.
const (
	kafkaVersion     = "4.3.1"
	cassandraVersion = "5.0.9"
	registryVersion  = "3.3.3"
)

// KafkaVersion is the version of the brokers that are started.
func KafkaVersion() string { return cmp.Or(os.Getenv(KafkaVersionEnv), kafkaVersion) }

// CassandraVersion is the version of the nodes that are started.
func CassandraVersion() string { return cmp.Or(os.Getenv(CassandraVersionEnv), cassandraVersion) }

// pomOf returns the server's pom.xml for a version.
func pomOf(name, version string) ([]byte, error) {
	pom, err := embedded.ReadFile(name + "/pom.xml")
	if err != nil {
		return nil, err
	}
	named := map[string]string{"kafka": kafkaVersion, "cassandra": cassandraVersion,
		"registry": registryVersion, "mirror": kafkaVersion,
		"serializers": serializersVersion, "debezium": debeziumVersion}[name]
	return []byte(strings.Replace(string(pom), "<version>"+named+"</version>",
		"<version>"+version+"</version>", 1)), nil
}
