package config

import "time"

// Layouts of the claims in Cassandra.
const (
	LayoutRows = "rows"
	LayoutLog  = "log"
)

// CassandraLog is a claim log in two tables of the keyspace, with `layout: log`. See
// `docs/stores.md#a-log-in-cassandra`.
type CassandraLog struct {
	// Table of the blocks: a letter, then letters, digits and `_`, at most 39. The second table has
	// `_registry` behind the name.
	Table string `mapstructure:"table"`
	// Shards of each log that `kdedup setup` makes, 1 to 1000. It cannot be changed later.
	Shards int `mapstructure:"shards"`
	// Where this process keeps its index, as in `store.kafka.index`.
	Index string `mapstructure:"index"`
	// Directory of the index, as in `store.kafka.path`.
	Path string `mapstructure:"path"`
}

// mostLogTable leaves room for what is behind it in the name of the second table.
const mostLogTable = 48 - len(registrySuffix)

const registrySuffix = "_registry"

// logMargin is how much longer than their ttl a log keeps claims.
const logMargin = time.Hour

func (c CassandraLog) check(p *problems, path string) {
	if !cassandraName.MatchString(c.Table) || len(c.Table) > mostLogTable {
		p.add(path+".table", "", "must be a letter and then letters, digits and _, at most %d in "+
			"all, got %q", mostLogTable, c.Table)
	}
	checkIndex(p, path, c.Shards, c.Index, c.Path)
}

// checkIndex has the rules for what all claim logs have.
func checkIndex(p *problems, section string, shards int, index, path string) {
	within(p, section+".shards", shards, 1, 1000)
	oneOf(p, section+".index", index, IndexFiles, IndexMemory)
	if index == IndexFiles {
		p.require(section+".path", path)
	}
}

// Logs reports whether the claims are kept in a log, which every process reads into an index.
func (s Store) Logs() bool {
	return s.Type == StoreKafka || s.Type == StoreCassandra && s.Cassandra.Layout == LayoutLog
}

// longestGroup is that of a group whose index is in files: its name is that of a directory there,
// with two digits for each byte, and a name has 255 bytes at most.
const longestGroup = 127

// checkGroup refuses a group that can have no index.
func (s *Store) checkGroup(p *problems, path string, t Topic) {
	if _, setting := s.IndexPath(); setting != "" && len(t.ScopeGroup) > longestGroup {
		key := "scope_group"
		if t.ScopeGroup == t.ConsumerGroup {
			key = "consumer_group"
		}
		p.add(path+"."+key, "choose a shorter one, or index: memory beside "+setting,
			"must be at most %d bytes where the index of a claim log is in files, got %d",
			longestGroup, len(t.ScopeGroup))
	}
}

// IndexPath is the directory of the index of a claim log, and the setting that names it; nil if
// there is none.
func (s *Store) IndexPath() (path *string, setting string) {
	switch {
	case s.Type == StoreKafka && s.Kafka.Index == IndexFiles:
		return &s.Kafka.Path, "store.kafka.path"
	case s.Logs() && s.Type == StoreCassandra && s.Cassandra.Log.Index == IndexFiles:
		return &s.Cassandra.Log.Path, "store.cassandra.log.path"
	}
	return nil, ""
}
