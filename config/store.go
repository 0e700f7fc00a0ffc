package config

import "time"

// Kinds of store.
const (
	StoreEmbedded  = "embedded"
	StoreCassandra = "cassandra"
)

// Store is where the claims are kept. Only the section that `type` names is used and checked.
type Store struct {
	// `embedded`: files of this process, for one process. `cassandra`: a table that any number of
	// processes share.
	Type string `mapstructure:"type"`
	// The store of type `embedded`.
	Embedded Embedded `mapstructure:"embedded"`
	// The store of type `cassandra`.
	Cassandra Cassandra `mapstructure:"cassandra"`
}

// Embedded is a store on the local disk.
type Embedded struct {
	// Directory of the store. One process per directory. Put it on a disk that survives a restart:
	// without it all claims are forgotten and later copies of a message are forwarded again. A
	// relative path starts at the working directory.
	Path string `mapstructure:"path"`
}

// Cassandra is a store in an Apache Cassandra table.
type Cassandra struct {
	// Required with `type: cassandra`. Some nodes as `host:port`, or `host` for port 9042. The
	// others are found through them.
	Hosts []string `mapstructure:"hosts"`
	// Keyspace of the table: a letter, then letters, digits and `_`, at most 48.
	Keyspace string `mapstructure:"keyspace"`
	// Table of the claims: a letter, then letters, digits and `_`, at most 48.
	Table string `mapstructure:"table"`
	// The data centre whose nodes are asked. Set it in every cluster of more than one data centre:
	// without it any node may be asked, and the `LOCAL_` levels below then mean that node's data
	// centre, a different one each time. Empty means that the cluster has only one.
	LocalDC string `mapstructure:"local_dc"`
	// Name for password authentication; needs `password`. Empty means no authentication.
	Username string `mapstructure:"username"`
	// Password of `username`.
	Password Secret `mapstructure:"password"`
	// Encryption of the connections to the nodes.
	TLS TLS `mapstructure:"tls"`
	// Consistency of the commit of a claim: `LOCAL_QUORUM`, `QUORUM`, `EACH_QUORUM` or `ALL`.
	// Weaker levels are refused, because a claim that is answered must survive the loss of a node.
	Consistency string `mapstructure:"consistency"`
	// Consistency of the decision about a claim: `LOCAL_SERIAL` (a quorum of one data centre) or
	// `SERIAL` (a quorum of all). With `LOCAL_SERIAL` in two data centres the same message is
	// claimed once in each, and so forwarded twice: use it only when all processes use the same
	// `local_dc`, and never both levels on one table.
	SerialConsistency string `mapstructure:"serial_consistency"`
	// How long one request may take, at least `2s`. It must be longer than the server's own
	// timeouts (`write_request_timeout`, `cas_contention_timeout`): otherwise this side gives up on
	// claims that the server still decides. A request that times out is sent again.
	Timeout time.Duration `mapstructure:"timeout"`
	// Connections to each node, 1 to 32.
	Connections int `mapstructure:"connections"`
	// Most requests under way in this process, 1 to 4096; further ones wait here. More load on a
	// busy cluster makes it slower, not faster.
	InFlight int `mapstructure:"in_flight"`
	// Most claims in one conditional batch, 1 to 200. A larger batch saves round trips until the
	// server's `batch_size_fail_threshold` refuses it.
	BatchClaims int `mapstructure:"batch_claims"`
	// Replication of the keyspace, as in CQL. `kdedup setup` uses it when the keyspace does not
	// exist; an existing keyspace is never altered. The default keeps one copy of each claim and is
	// for trials: in production use
	// `{'class': 'NetworkTopologyStrategy', '<data centre>': 3}`.
	Replication string `mapstructure:"replication"`
}
