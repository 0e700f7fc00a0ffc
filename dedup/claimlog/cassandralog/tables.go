package cassandralog

import (
	"context"
	"strconv"
	"time"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
)

// registrySuffix is behind the name of the table with the blocks in that of the registry's.
const registrySuffix = "_registry"

type table struct {
	name, keys string
	columns    []string // in the order of their names
}

func (l *Logs) tables() []table {
	name := l.o.Cassandra.Table
	return []table{
		{name, "consumer_group text, log uuid, shard int, slice bigint, seq bigint, " +
			"last bigint static, block blob, " +
			"PRIMARY KEY ((consumer_group, log, shard, slice), seq)",
			[]string{"block", "consumer_group", "last", "log", "seq", "shard", "slice"}},
		{name + registrySuffix,
			"consumer_group text, key text, value blob, PRIMARY KEY ((consumer_group, key))",
			[]string{"consumer_group", "key", "value"}},
	}
}

// windows are about how many SSTables there are, and how many times larger than what lives the
// table is at most: 1 + 1/windows.
const windows = 24

// Setup creates the tables where they are missing. Blocks come in the order in which they expire,
// and nothing is deleted, so time windows have whole SSTables end. The ttl, the longest of all
// scopes, decides how long they are.
func (l *Logs) Setup(
	ctx context.Context, replication string, ttl time.Duration, dryRun bool, say func(string),
) error {
	hours := max(1, int((ttl+claimlog.Margin).Hours()/windows))
	options := map[string]string{
		l.o.Cassandra.Table: " WITH CLUSTERING ORDER BY (seq ASC) AND compaction = {'class': " +
			"'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', " +
			"'compaction_window_size': '" + strconv.Itoa(hours) + "'} AND gc_grace_seconds = " +
			strconv.Itoa(int(cassandra.Grace.Seconds())),
	}
	var tables []cassandra.Table
	for _, t := range l.tables() {
		with := options[t.name]
		if with == "" {
			with = " WITH comment = 'settings of the claim logs, for ever'"
		}
		tables = append(tables, cassandra.Table{Name: t.name,
			Definition: "(" + t.keys + ")" + with})
	}
	return cassandra.SetupTables(ctx, l.o.Cassandra, replication, tables, dryRun, say)
}

// statements are those of a log.
type statements struct {
	page, row, newest, last     string
	setLast, insert             string
	appends                     []string // of 1 block, of 2 and so on
	founding                    string
	foundIfNone, foundIfAnother string
	unfound, deleteSlice        string
}

func (l *Logs) statements() statements {
	name := l.o.Cassandra.Quoted(l.o.Cassandra.Table)
	const slice = " WHERE consumer_group = ? AND log = ? AND shard = ? AND slice = ?"
	s := statements{
		page: "SELECT seq, block FROM " + name + slice + " AND seq >= ? LIMIT " +
			strconv.Itoa(pageBlocks),
		row:    "SELECT block FROM " + name + slice + " AND seq = ?",
		newest: "SELECT seq FROM " + name + slice + " ORDER BY seq DESC LIMIT 1",
		last:   "SELECT DISTINCT last FROM " + name + slice,
		setLast: "UPDATE " + name + " USING TTL ? SET last = ?" + slice +
			" IF last = ?",
		insert: "INSERT INTO " + name + " (consumer_group, log, shard, slice, seq, block) VALUES " +
			"(?, ?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?",
		founding: "SELECT block, toTimestamp(now()) FROM " + name + slice + " AND seq = ?",
		foundIfNone: "INSERT INTO " + name + " (consumer_group, log, shard, slice, seq, block) " +
			"VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS",
		foundIfAnother: "UPDATE " + name + " SET block = ?" + slice + " AND seq = ? IF block = ?",
		unfound:        "DELETE FROM " + name + slice + " AND seq = ? IF EXISTS",
		deleteSlice:    "DELETE FROM " + name + slice,
	}
	s.appends = appends(s.setLast, s.insert)
	return s
}
