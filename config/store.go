package config

import "time"

// Kinds of store.
const (
	StoreEmbedded  = "embedded"
	StoreCassandra = "cassandra"
	StoreRedis     = "redis"
	StorePostgres  = "postgres"
	StoreKafka     = "kafka"
)

// Store is where the claims are kept, see `docs/stores.md`. Only the section that `type` names is
// used and checked.
type Store struct {
	// `kafka`: the claim log, in topics beside the input's. `embedded`: files of this process.
	// `cassandra`: tables. `redis`: keys in Redis or Valkey. `postgres`: a table. All but
	// `embedded` are for any number of processes.
	Type string `mapstructure:"type"`
	// The store of type `embedded`.
	Embedded Embedded `mapstructure:"embedded"`
	// The store of type `cassandra`.
	Cassandra Cassandra `mapstructure:"cassandra"`
	// The store of type `redis`.
	Redis Redis `mapstructure:"redis"`
	// The store of type `postgres`.
	Postgres Postgres `mapstructure:"postgres"`
	// The store of type `kafka`.
	Kafka ClaimLog `mapstructure:"kafka"`
	// Which processes keep what of a claim log: of the store of type `kafka`, or of type
	// `cassandra` with `layout: log`.
	Keepers Keepers `mapstructure:"keepers"`
}

// Kinds of index.
const (
	IndexFiles  = "files"
	IndexMemory = "memory"
)

// ClaimLog is a store in topics of the cluster that `kafka` names. See `docs/claimlog.md`.
type ClaimLog struct {
	// Topic with the claims of a consumer group, or of the `scope_group` in its place; `{group}`
	// stands for it. The second topic has `.scopes` behind the name.
	Topic string `mapstructure:"topic"`
	// Partitions of the topic that `kdedup setup` makes, 1 to 1000. More spread the work over more
	// brokers. It cannot be changed later: `kdedup migrate` moves the claims to another topic.
	Shards int `mapstructure:"shards"`
	// Where this process keeps its index: `files`, in `path`, or `memory`: a start reads the whole
	// log, and each claim takes about 200 bytes of memory.
	Index string `mapstructure:"index"`
	// Directory of the index; every `instance` has its own in it. You may lose it: kdedup makes it
	// again from the log.
	Path string `mapstructure:"path"`
	// How long a batch of claims may take, at least `1s`. Claims that time out are sent again.
	Timeout time.Duration `mapstructure:"timeout"`
	// Which cluster has the log: `input`, or `output`, which is `kafka.output`. See
	// `docs/claimlog.md#on-which-cluster`. A log does not move with this setting.
	Cluster string `mapstructure:"cluster"`
}

// Clusters that can have a claim log.
const (
	ClusterInput  = "input"
	ClusterOutput = "output"
)

// ClaimsApart reports whether the claim log is on the cluster of what is forwarded.
func (c Config) ClaimsApart() bool {
	return c.Store.Type == StoreKafka && c.Store.Kafka.Cluster == ClusterOutput &&
		c.Kafka.Output.Apart()
}

// Embedded is a store on the local disk.
type Embedded struct {
	// Directory of the store, for one process, on a disk that survives a restart. Without it all
	// claims are lost, and kdedup refuses to start until `kdedup setup --accept-empty-store`.
	Path string `mapstructure:"path"`
}

// Cassandra is a store in an Apache Cassandra table.
type Cassandra struct {
	// Required with `type: cassandra`. Some nodes as `host:port`, or `host` for port 9042.
	Hosts []string `mapstructure:"hosts"`
	// How claims are kept. `rows`: a row for each. `log`: in the blocks of a log, which costs the
	// nodes a twentieth of that, and each process an index of all claims. See
	// `docs/stores.md#a-log-in-cassandra` before you change it.
	Layout string `mapstructure:"layout"`
	// The log, with `layout: log`.
	Log CassandraLog `mapstructure:"log"`
	// Keyspace of the table: a letter, then letters, digits and `_`, at most 48, and not one of
	// Cassandra's own. Capitals count.
	Keyspace string `mapstructure:"keyspace"`
	// Table of the claims: a letter, then letters, digits and `_`, at most 48. Not used with
	// `layout: log`.
	Table string `mapstructure:"table"`
	// The data centre whose nodes kdedup asks, and no others. Required with `LOCAL_SERIAL` in a
	// cluster of more than one. Empty: the cluster has only one.
	LocalDC string `mapstructure:"local_dc"`
	// Name for password authentication; needs `password`. Empty: no authentication.
	Username string `mapstructure:"username"`
	// Password of `username`.
	Password Secret `mapstructure:"password"`
	// Encryption of the connections to the nodes.
	TLS TLS `mapstructure:"tls"`
	// Consistency of the commit of a claim: `LOCAL_QUORUM`, `QUORUM`, `EACH_QUORUM` or `ALL`.
	// Weaker levels are refused.
	Consistency string `mapstructure:"consistency"`
	// Consistency of the decision about a claim: `LOCAL_SERIAL` (a quorum of one data centre) or
	// `SERIAL` (a quorum of all). With `LOCAL_SERIAL` in two data centres the same message is
	// forwarded twice: use it only when all processes use the same `local_dc`, and never both
	// levels on one table.
	SerialConsistency string `mapstructure:"serial_consistency"`
	// How long one request may take, at least `2s`; then it is sent again. It must be longer than
	// the server's own timeouts (`write_request_timeout`, `cas_contention_timeout`). With `layout:
	// log` a batch of claims may take twice as long.
	Timeout time.Duration `mapstructure:"timeout"`
	// Connections to each node, 1 to 32.
	Connections int `mapstructure:"connections"`
	// Most requests under way in this process, 1 to 4096. Raise it only if a request takes long
	// although the cluster is not busy: across data centres, with `SERIAL`. Not used with `layout:
	// log`.
	InFlight int `mapstructure:"in_flight"`
	// Most claims in one conditional batch, 1 to 200, which costs one Paxos round whatever their
	// number. With 1 each claim is one insert, for servers that refuse conditional batches. Not
	// used with `layout: log`.
	BatchClaims int `mapstructure:"batch_claims"`
	// Replication of the keyspace that `kdedup setup` makes, as in CQL. The default keeps one copy
	// of each claim and is for trials: in production use `{'class': 'NetworkTopologyStrategy',
	// '<data centre>': 3}`.
	Replication string `mapstructure:"replication"`
}

// Kinds of Redis deployment.
const (
	RedisStandalone = "standalone"
	RedisSentinel   = "sentinel"
	RedisCluster    = "cluster"
)

// Redis is a store in Redis 7.0 or later, or in Valkey, with the `maxmemory-policy` `noeviction`;
// another one is refused. `tls` is for the sentinels too.
type Redis struct {
	// `standalone`: one server, or one address that always leads to the master. `sentinel`: a
	// master that Redis Sentinel watches. `cluster`: Redis Cluster.
	Mode string `mapstructure:"mode"`
	// Required with `type: redis`. The server, or some sentinels, or some nodes of the cluster, as
	// `host:port`, or `host` for port 6379 (26379 for sentinels).
	Addresses []string `mapstructure:"addresses"`
	// Required with `mode: sentinel`, refused otherwise. The master's name among the sentinels.
	MasterName string `mapstructure:"master_name"`
	// Number of the database, 0 or more. A cluster has only 0.
	Database int `mapstructure:"database"`
	// Name of an ACL user; needs `password`. Empty: the default user.
	Username string `mapstructure:"username"`
	// Password of `username`, or of the default user.
	Password Secret `mapstructure:"password"`
	// Name for the sentinels; needs `sentinel_password`.
	SentinelUsername string `mapstructure:"sentinel_username"`
	// Password for the sentinels. They do not take that of the master.
	SentinelPassword Secret `mapstructure:"sentinel_password"`
	// Encryption of the connections, to sentinels too.
	TLS TLS `mapstructure:"tls"`
	// What all keys begin with: 1 to 100 of letters, digits, `.`, `_`, `-`, `:`. Processes with
	// other prefixes do not see each other's claims.
	KeyPrefix string `mapstructure:"key_prefix"`
	// How long one pipeline of claims may take, at least `100ms`; then it is sent again.
	Timeout time.Duration `mapstructure:"timeout"`
	// Connections to each server, 1 to 1000. Every lane uses up to four at a time.
	Connections int `mapstructure:"connections"`
	// Most claims in one pipeline, 1 to 10000.
	PipelineClaims int `mapstructure:"pipeline_claims"`
	// How many replicas must have a claim before it counts as made, 0 to 10. A failover then rarely
	// takes claims back, but without enough replicas nothing is claimed. Refused with `mode:
	// cluster`.
	WaitReplicas int `mapstructure:"wait_replicas"`
	// How long a pipeline waits for replicas, at least `1ms` and less than `timeout`; then it is
	// sent again.
	WaitTimeout time.Duration `mapstructure:"wait_timeout"`
}

// Postgres is a store in a PostgreSQL table, version 13 or later.
type Postgres struct {
	// Required with `type: postgres`. The server as `host:port`, or `host` for port 5432. Of
	// several, the first that takes writes is used. A pgbouncer is fine, also with `pool_mode =
	// transaction`.
	Hosts []string `mapstructure:"hosts"`
	// Database of the table. It must exist.
	Database string `mapstructure:"database"`
	// Name to log in with.
	Username string `mapstructure:"username"`
	// Password of `username`. Empty: the server asks for none, or for a client certificate.
	Password Secret `mapstructure:"password"`
	// Encryption of the connections to the server.
	TLS TLS `mapstructure:"tls"`
	// Schema of the tables: a lower-case letter, then lower-case letters, digits and `_`, at most
	// 48.
	Schema string `mapstructure:"schema"`
	// Table of the claims: a lower-case letter, then lower-case letters, digits and `_`, at most
	// 48.
	Table string `mapstructure:"table"`
	// How long one statement, and one attempt to connect, may take, at least `1s`; then it is sent
	// again.
	Timeout time.Duration `mapstructure:"timeout"`
	// Most connections of this process for claims, 1 to 100, about as many as the server has cores
	// for this process. One more deletes expired claims.
	Connections int `mapstructure:"connections"`
	// Most claims in one statement, 1 to 10000. Statements run side by side, on different
	// connections.
	BatchClaims int `mapstructure:"batch_claims"`
	// How often this process looks for expired claims to delete, `0s` or at least `1s`. `0s`:
	// never, so another process must.
	SweepInterval time.Duration `mapstructure:"sweep_interval"`
}
