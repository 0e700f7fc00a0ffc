package config

import (
	"os"
	"strings"
	"time"
)

// Default is a configuration with every default and nothing that is required.
func Default() Config {
	return Config{
		ShutdownTimeout: 30 * time.Second,
		Kafka: Kafka{SASL: defaultSASL(),
			Output: OutputCluster{Brokers: []string{}, SASL: defaultSASL()}},
		Store: Store{
			Type:      StoreKafka,
			Embedded:  Embedded{Path: "./kdedup-data"},
			Cassandra: defaultCassandra(),
			Redis:     defaultRedis(),
			Postgres:  defaultPostgres(),
			Kafka: ClaimLog{Topic: "{group}.claims", Shards: 8, Index: IndexFiles,
				Path: "./kdedup-index", Timeout: 10 * time.Second, Cluster: ClusterInput},
			Keepers: Keepers{Keep: KeepAll, Copies: 1, Listen: "127.0.0.1:9482"},
		},
		SchemaRegistry: SchemaRegistry{URLs: []string{}, Headers: []string{}, Schemas: []string{},
			OAuth: RegistryOAuth{Scopes: []string{}}, Timeout: 5 * time.Second},
		Server: Server{Listen: "127.0.0.1:9480", Hosts: []string{}, Lookup: true},
		API:    defaultAPI(),
		Metrics: Metrics{PerPartition: true, PerTopic: PerTopicAuto,
			OTLP: MetricsOTLP{Interval: time.Minute, Timeout: 10 * time.Second}},
		Tracing: Tracing{SampleRatio: 0.1, Timeout: 10 * time.Second},
		Log:     Log{Level: "info", Format: "text"},
		Reload:  Reload{Watch: true},
	}
}

func defaultSASL() SASL {
	return SASL{OAuth: OAuth{Scopes: []string{}, Extensions: []string{}}}
}

func defaultCassandra() Cassandra {
	return Cassandra{
		Layout: LayoutRows,
		Log: CassandraLog{Table: "claim_log", Shards: 8, Index: IndexFiles,
			Path: "./kdedup-index"},
		Keyspace:          "kdedup",
		Table:             "processed_messages",
		Consistency:       "LOCAL_QUORUM",
		SerialConsistency: "LOCAL_SERIAL",
		Timeout:           5 * time.Second,
		Connections:       2,
		InFlight:          64,
		BatchClaims:       200,
		Replication:       "{'class': 'SimpleStrategy', 'replication_factor': 1}",
	}
}

func defaultRedis() Redis {
	return Redis{
		Mode:           RedisStandalone,
		KeyPrefix:      "kdedup",
		Timeout:        5 * time.Second,
		Connections:    16,
		PipelineClaims: 1000,
		WaitTimeout:    time.Second,
	}
}

func defaultPostgres() Postgres {
	return Postgres{
		Database:      "kdedup",
		Username:      "kdedup",
		Schema:        "kdedup",
		Table:         "processed_messages",
		Timeout:       5 * time.Second,
		Connections:   4,
		BatchClaims:   2500,
		SweepInterval: time.Minute,
	}
}

// DefaultTopic is an entry of topics with every default and nothing that is required.
func DefaultTopic() Topic {
	return Topic{
		Delivery:           DeliveryExactlyOnce,
		Lanes:              2,
		TTL:                7 * 24 * time.Hour,
		TTLFrom:            TTLFromFirst,
		Buckets:            128,
		Mode:               ModeEnforce,
		OnMissingID:        ActionDeadLetter,
		OnTombstone:        ActionAsAny,
		Documents:          DocumentsAny,
		Fingerprint:        Fingerprint{Of: FingerprintAll},
		OnConflict:         ActionDrop,
		OnReplay:           ActionDrop,
		OnUndeliverable:    ActionDeadLetter,
		OnSkip:             ActionReread,
		OnStoreOutage:      ActionBlock,
		OutageGrace:        30 * time.Second,
		Partitioner:        PartitionerPreserve,
		Compression:        CompressionInput,
		Start:              StartEarliest,
		BatchRecords:       20_000,
		BatchBytes:         16 << 20,
		FetchBytes:         1 << 20,
		UnpackedBytes:      64 << 20,
		SessionTimeout:     15 * time.Second,
		TransactionTimeout: 15 * time.Second,
		GroupProtocol:      ProtocolClassic,
	}
}

// Derived returns the configuration with the defaults that follow from other settings filled in:
// Instance, each topic's Scope, ScopeGroup and FenceTopic, and the API's scopes. Load has done it;
// call it for a configuration that was built in Go. The topics of the receiver do not change.
func (c Config) Derived() Config {
	if c.Instance == "" {
		// Validate reports the instance that stays empty when the host name is unknown.
		c.Instance, _ = os.Hostname()
	}
	for _, sasl := range []*SASL{&c.Kafka.SASL, &c.Kafka.Output.SASL} {
		sasl.Mechanism = spelled(sasl.Mechanism)
	}
	topics := make([]Topic, len(c.Topics))
	for i, t := range c.Topics {
		topics[i] = t.derived()
	}
	c.Topics, c.API = topics, c.API.derived()
	return c
}

// spelled is a SASL mechanism as kdedup writes it. Kafka's own names have capitals and underscores,
// as SCRAM-SHA-512 and AWS_MSK_IAM.
func spelled(mechanism string) string {
	return strings.ToLower(strings.ReplaceAll(mechanism, "_", "-"))
}

func (t Topic) derived() Topic {
	if t.Scope == "" {
		t.Scope = t.Input
		if t.Pattern != "" {
			t.Scope = topicPlace
		}
	}
	if t.ScopeGroup == "" {
		t.ScopeGroup = t.ConsumerGroup
	}
	if t.FenceTopic == "" && t.ConsumerGroup != "" {
		t.FenceTopic = FenceTopicOf(t.ConsumerGroup)
	}
	return t
}

// FenceTopicOf is the fence topic of a consumer group whose entry names none.
func FenceTopicOf(group string) string { return group + ".fence" }
