package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Validate checks everything and joins an *Error for each thing that is wrong. Settings that
// Derived would fill in may be empty.
func (c Config) Validate() error {
	p := &problems{}
	c.Derived().check(p)
	return p.err()
}

var instanceName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,200}$`)

const longest = time.Duration(1<<63 - 1)

func (c Config) check(p *problems) {
	if !instanceName.MatchString(c.Instance) {
		p.add("instance", "", "must be 1 to 200 of letters, digits, '.', '_', '-', got %q",
			c.Instance)
	}
	within(p, "shutdown_timeout", c.ShutdownTimeout, time.Second, longest)
	if c.needsKafka() {
		p.addresses("kafka.brokers", c.Kafka.Brokers)
	}
	c.Kafka.check(p)
	c.Kafka.Output.check(p)
	c.Store.check(p)
	c.Store.checkUnnamed(p)
	if c.Store.Type == StoreKafka && c.Store.Kafka.Cluster == ClusterOutput &&
		!c.Kafka.Output.Apart() {
		p.add("store.kafka.cluster", "name its brokers in kafka.output, or leave this setting out",
			"must be %s while there is one cluster, got %s", ClusterInput, ClusterOutput)
	}
	c.SchemaRegistry.check(p, c.Topics)
	c.Server.check(p)
	c.API.check(p, c.Store, c.Topics)
	c.checkListeners(p)
	oneOf(p, "metrics.per_topic", c.Metrics.PerTopic, PerTopicAuto, PerTopicAll, PerTopicSummed)
	c.Metrics.OTLP.check(p)
	c.Tracing.check(p)
	oneOf(p, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	oneOf(p, "log.format", c.Log.Format, "text", "json")
	if len(c.Topics) == 0 && len(c.API.Scopes) == 0 {
		p.add("topics", "", "is required, at least one entry")
	}
	for i, t := range c.Topics {
		path := fmt.Sprintf("topics[%d]", i)
		if t.Pattern != "" {
			t.checkPattern(p, path)
			t = t.of("topic") // for the rules that every entry has
		}
		t.check(p, path)
		c.Store.checkGroup(p, path, t)
		if c.Store.Type == StoreCassandra {
			margin := time.Duration(0)
			if c.Store.Logs() {
				margin = logMargin
			}
			checkCassandraTTL(p, fmt.Sprintf("topics[%d].ttl", i), t.TTL, margin)
		}
	}
	checkTogether(p, exactOf(c.Topics))
}

// needsKafka is false where the API answers alone, from a store that is not in Kafka.
func (c Config) needsKafka() bool {
	return len(c.Topics) > 0 || len(c.API.Scopes) == 0 || c.Store.Type == StoreKafka
}

func (t TLS) check(p *problems, path string) {
	files := []struct{ key, value string }{
		{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile},
		{"server_name", t.ServerName},
	}
	for _, f := range files {
		switch {
		case !t.Enabled && f.value != "":
			p.add(path+"."+f.key, "set enabled to true", "has no effect while %s.enabled is false",
				path)
		case f.key != "server_name":
			p.readable(path+"."+f.key, f.value)
		}
	}
	if t.KeyFile == "" && t.CertFile != "" {
		p.add(path+".key_file", "", "is required with cert_file")
	}
	if t.CertFile == "" && t.KeyFile != "" {
		p.add(path+".cert_file", "", "is required with key_file")
	}
}

func (s Store) check(p *problems) {
	oneOf(p, "store.type", s.Type, StoreEmbedded, StoreCassandra, StoreRedis, StorePostgres,
		StoreKafka)
	switch s.Type {
	case StoreEmbedded:
		p.require("store.embedded.path", s.Embedded.Path)
	case StoreCassandra:
		s.Cassandra.check(p)
	case StoreRedis:
		s.Redis.check(p)
	case StorePostgres:
		s.Postgres.check(p)
	case StoreKafka:
		s.Kafka.check(p)
	}
	if s.Logs() {
		s.Keepers.check(p)
	} else if s.Keepers.Keep == KeepOnly {
		p.add("store.keepers.keep", "take store.type: kafka, or cassandra with layout: log",
			"cannot be only with this store: it has no claim log, of which something could be kept")
	}
}

// checkUnnamed refuses a file that does not name the type and looks as if it meant another than the
// default. The default was embedded before it was kafka.
func (s Store) checkUnnamed(p *problems) {
	if _, named := p.places["store.type"]; named || p.places == nil {
		return
	}
	for _, other := range []string{StoreEmbedded, StoreCassandra, StoreRedis, StorePostgres} {
		// The environment may hold settings of stores that other processes use.
		if place := p.places["store."+other]; place != "" {
			p.add("store.type", "write type: "+other, "is required with store.%s (%s): the "+
				"default is %s", other, place, s.Type)
			return
		}
	}
	// Every embedded store has this file, see dedup/embedded.
	if _, err := os.Stat(filepath.Join(s.Embedded.Path, "scopes.json")); err == nil {
		p.add("store.type", "write store: {type: embedded} to go on with these claims; kdedup "+
			"migrate moves them to another store", "is required: %s has the claims of an "+
			"embedded store, which was the default once, and now %s is", s.Embedded.Path, s.Type)
	}
}

// claimsTopic has the group's place once: without it groups would share a log.
var claimsTopic = regexp.MustCompile(`^[a-zA-Z0-9._-]*\{group\}[a-zA-Z0-9._-]*$`)

func (c ClaimLog) check(p *problems) {
	const path = "store.kafka"
	if !claimsTopic.MatchString(c.Topic) || len(c.Topic) > 60 {
		p.add(path+".topic", "", "must be at most 60 of letters, digits, '.', '_', '-' around "+
			"{group}, such as {group}.claims, got %q", c.Topic)
	}
	checkIndex(p, path, c.Shards, c.Index, c.Path)
	within(p, path+".timeout", c.Timeout, time.Second, longest)
	oneOf(p, path+".cluster", c.Cluster, ClusterInput, ClusterOutput)
}

func (c Cassandra) check(p *problems) {
	const path = "store.cassandra"
	p.addresses(path+".hosts", c.Hosts)
	c.checkTables(p, path)
	if c.Username == "" && c.Password != "" {
		p.add(path+".username", "", "is required with password")
	}
	if c.Username != "" && c.Password == "" {
		p.add(path+".password", "", "is required with username")
	}
	c.TLS.check(p, path+".tls")
	oneOf(p, path+".consistency", c.Consistency, "LOCAL_QUORUM", "QUORUM", "EACH_QUORUM", "ALL")
	oneOf(p, path+".serial_consistency", c.SerialConsistency, "LOCAL_SERIAL", "SERIAL")
	within(p, path+".timeout", c.Timeout, 2*time.Second, longest)
	within(p, path+".connections", c.Connections, 1, 32)
	within(p, path+".in_flight", c.InFlight, 1, 4096)
	within(p, path+".batch_claims", c.BatchClaims, 1, 200)
	if !isReplication(strings.TrimSpace(c.Replication)) {
		p.add(path+".replication", "",
			"must be a CQL map such as {'class': 'NetworkTopologyStrategy', 'dc1': 3}, got %q",
			c.Replication)
	}
}

// checkTables leaves to the server what is the server's, and keeps the tables apart.
func (c Cassandra) checkTables(p *problems, path string) {
	p.cassandraName(path+".keyspace", c.Keyspace)
	if lower := strings.ToLower(c.Keyspace); lower == "system" ||
		strings.HasPrefix(lower, "system_") {
		p.add(path+".keyspace", "", "must not be system or begin with system_, which are "+
			"Cassandra's own, got %q", c.Keyspace)
	}
	p.cassandraName(path+".table", c.Table)
	if c.Table == scopesTable {
		p.add(path+".table", "", "must not be %s, which keeps the settings of the scopes",
			scopesTable)
	}
	if oneOf(p, path+".layout", c.Layout, LayoutRows, LayoutLog); c.Layout != LayoutLog {
		return
	}
	c.Log.check(p, path+".log")
	if others := []string{scopesTable, c.Table}; slices.Contains(others, c.Log.Table) ||
		slices.Contains(others, c.Log.Table+registrySuffix) {
		p.add(path+".log.table", "", "must not be the table of another layout, got %q",
			c.Log.Table)
	}
}

// scopesTable is beside the claims in Cassandra and in PostgreSQL.
const scopesTable = "dedup_scopes"

func (c Postgres) check(p *problems) {
	const path = "store.postgres"
	p.addresses(path+".hosts", c.Hosts)
	p.require(path+".database", c.Database)
	p.require(path+".username", c.Username)
	c.TLS.check(p, path+".tls")
	p.postgresName(path+".schema", c.Schema)
	if strings.HasPrefix(c.Schema, "pg_") || c.Schema == "information_schema" {
		p.add(path+".schema", "", "must not be information_schema or begin with pg_, which are "+
			"PostgreSQL's own, got %q", c.Schema)
	}
	p.postgresName(path+".table", c.Table)
	if c.Table == scopesTable {
		p.add(path+".table", "", "must not be %s, which keeps the settings of the scopes",
			scopesTable)
	}
	within(p, path+".timeout", c.Timeout, time.Second, longest)
	within(p, path+".connections", c.Connections, 1, 100)
	within(p, path+".batch_claims", c.BatchClaims, 1, 10_000)
	if c.SweepInterval != 0 {
		within(p, path+".sweep_interval", c.SweepInterval, time.Second, longest)
	}
}

// isReplication recognises the outline of a CQL map; the server judges the rest.
func isReplication(cql string) bool {
	return strings.HasPrefix(cql, "{") && strings.HasSuffix(cql, "}") &&
		strings.Contains(cql, "'class'")
}
