// Package servers runs real servers for tests: an Apache Kafka broker, Apache Cassandra nodes, a
// PostgreSQL server, Redis or Valkey servers and an Apicurio schema registry, each in a process of
// its own on loopback, under the test's control. A test may stop, kill, pause and restart them.
//
// PostgreSQL and Redis are the installed programs. The others are plain Java programs. Their jars
// come by Maven once and stay in the user's cache directory; Java 17 and Maven must be
// installed. StartKafkaContainer and StartCassandraContainer are the other way for machines with a
// container engine; a container can only be started and stopped.
//
// PostgreSQL's programs are those of Debian's package. The registry's Java, which must be 21 or
// later, comes with the packages of a Python, see FindPython.
//
// No server outlives its starter. A killed test binary takes its servers with it at once, because
// Linux kills them; other systems do not do that, and there a killed binary leaves them behind. A
// killed `go test` leaves its test binary running, so an orphaned starter kills its servers itself,
// within a second.
package servers
