package messageid

import (
	"strings"

	"github.com/kdedup/kdedup/dedup"
)

// feeds are known by the manuals of the producers. docs/recipes has a page for each.
var feeds = map[string]feed{
	FromMaxwell: {feedFields{{"", "type"}, {"", "database"}, {"", "table"}, {"", "ts"},
		{"", "xid"}, {"", "xoffset"}, {"", "position"}, {"", "gtid"}, {"", "server_id"},
		{"", "primary_key"}, {"", "data"}, {"", "old"}, {"", "sql"}}, judgeMaxwell},
	FromCanal: {canalFields, judgeCanal},
	FromTiCDC: {append(canalFields, [][2]string{{"_tidb", "commitTs"}, {"", "op"},
		{"", "before"}, {"", "after"}, {"source", "commit_ts"}, {"source", "cluster_id"},
		{"source", "name"}, {"source", "db"}, {"source", "table"}, {"source", "connector"}}...),
		judgeTiCDC},
	FromCockroachDB: {feedFields{{"", "updated"}, {"", "mvcc_timestamp"}, {"", "topic"},
		{"", "key"}, {"", "op"}, {"", "before"}, {"", "after"}, {"", "resolved"},
		{"source", "database_name"}, {"source", "schema_name"}, {"source", "table_name"},
		{"source", "ts_hlc"}, {"source", "mvcc_timestamp"}, {"__crdb__", "updated"},
		{"__crdb__", "mvcc_timestamp"}, {"__crdb__", "resolved"}}, judgeCockroachDB},
	// only its token counts, see fromMongoDB
	FromMongoDB: {feedFields{{"", "_id"}}, nil},
	FromDMS: {feedFields{{"metadata", "record-type"}, {"metadata", "operation"},
		{"metadata", "schema-name"}, {"metadata", "table-name"},
		{"metadata", "stream-position"}, {"metadata", "transaction-id"},
		{"metadata", "transaction-record-id"}, {"metadata", "commit-timestamp"}, {"", "data"},
		{"", "before-image"}}, judgeDMS},
}

// The capacity is the length: each append makes a copy.
var canalFields = feedFields{{"", "type"}, {"", "database"}, {"", "table"}, {"", "es"},
	{"", "gtid"}, {"", "isDdl"}, {"", "sql"}, {"", "data"}, {"", "old"}, {"", "id"}}

// judgeMaxwell wants the transaction of a row, or its position. Rows of a bootstrap and statements
// have none; they have the time at which they were.
func judgeMaxwell(c *feedChange) dedup.MissingReason {
	word := string(unquotedText(*c.of("", "type")))
	switch {
	case word == "bootstrap-start", word == "bootstrap-complete":
		return dedup.MissingExempt
	case !c.has("", "ts") || !c.has("", "database"):
		return dedup.MissingAbsent
	case word == "bootstrap-insert", strings.HasPrefix(word, "table-"),
		strings.HasPrefix(word, "database-"):
		return dedup.NotMissing
	case word == "" || !c.has("", "xid") && !c.has("", "position"):
		return dedup.MissingAbsent
	}
	return dedup.NotMissing
}

// watermark is the type of TiCDC's marks of time in Canal's form.
const watermark = "TIDB_WATERMARK"

// judgeCanal leaves out the number of a batch, which is another one when it is sent again. TiCDC
// writes 0 there, and its statements to every partition.
func judgeCanal(c *feedChange) dedup.MissingReason {
	id := c.of("", "id")
	ofTiCDC := string(*id) == "0"
	*id = nil
	switch {
	case c.is("", "type", watermark), ofTiCDC && c.is("", "isDdl", "true"):
		return dedup.MissingExempt
	case !c.has("", "type") || !c.has("", "es"):
		return dedup.MissingAbsent
	}
	return dedup.NotMissing
}

// judgeTiCDC lets pass what is written to every partition: marks of time, and statements. In
// Debezium's form the mark has the operation m, and a statement has none.
func judgeTiCDC(c *feedChange) dedup.MissingReason {
	debezium := c.has("source", "connector")
	*c.of("", "id") = nil
	switch {
	case c.is("", "type", watermark), c.is("", "isDdl", "true"),
		debezium && (c.is("", "op", "m") || !c.has("", "op")):
		return dedup.MissingExempt
	case debezium && c.has("source", "commit_ts"):
		return dedup.NotMissing
	case !c.has("", "type") || !c.has("", "es") && !c.has("_tidb", "commitTs"):
		return dedup.MissingAbsent
	}
	return dedup.NotMissing
}

func judgeCockroachDB(c *feedChange) dedup.MissingReason {
	switch {
	case c.members == 1 && (c.has("", "resolved") || c.has("__crdb__", "resolved")):
		return dedup.MissingExempt
	case c.has("__crdb__", "updated"), c.has("__crdb__", "mvcc_timestamp"):
		return dedup.NotMissing
	case !c.wrote("after") && !c.schema: // a row of its own, which may have such columns
		return dedup.MissingAbsent
	case c.has("", "updated"), c.has("", "mvcc_timestamp"), c.has("source", "ts_hlc"),
		c.has("source", "mvcc_timestamp"):
		return dedup.NotMissing
	}
	return dedup.MissingAbsent
}

// judgeDMS lets the records of a load pass, which have no place in the source's log. The number of
// a transaction counts only where there is no place: DMS makes its own for some sources.
func judgeDMS(c *feedChange) dedup.MissingReason {
	switch {
	case c.is("metadata", "record-type", "control"), c.is("metadata", "operation", "load"):
		return dedup.MissingExempt
	case c.has("metadata", "stream-position"):
		*c.of("metadata", "transaction-id") = nil
		return dedup.NotMissing
	case c.has("metadata", "transaction-id") && c.has("metadata", "transaction-record-id"):
		return dedup.NotMissing
	}
	return dedup.MissingAbsent
}
