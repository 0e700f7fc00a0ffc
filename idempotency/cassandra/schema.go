package cassandra

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/idempotency"
)

// Schema returns the statement that creates the table of the options, for a migration. It may be
// repeated. Rows end by their TTL alone, so tombstones are kept no longer than Paxos state: 3
// hours.
func Schema(o Options) string {
	return "CREATE TABLE IF NOT EXISTS " + o.withDefaults().quotedTable() + ` (
	namespace blob, id blob,
	owner blob, revision bigint,
	state text,        -- started, completed, failed or released
	fencing_token bigint,
	lease_ms bigint,
	request blob,      -- SHA-256
	response blob,
	PRIMARY KEY ((namespace, id))
) WITH compaction = {'class': 'LeveledCompactionStrategy'} AND gc_grace_seconds = 10800`
}

// quotedTable names the table as CQL understands the option, with quotes around all of it: a name
// may be a word that CQL reserves.
func (o Options) quotedTable() string {
	parts := strings.Split(o.Table, ".")
	for i, part := range parts {
		if !strings.HasPrefix(part, `"`) {
			parts[i] = `"` + strings.ToLower(part) + `"`
		}
	}
	return strings.Join(parts, ".")
}

// Setup creates the table, unless it exists. The keyspace has to be there.
func Setup(ctx context.Context, session *gocql.Session, o Options) error {
	if err := session.Query(Schema(o)).WithContext(ctx).Exec(); err != nil {
		return fmt.Errorf("set up idempotency store: cassandra: %w", err)
	}
	return session.AwaitSchemaAgreement(ctx)
}

// statements are those of one table.
type statements struct{ get, first, next string }

// newStatements. A first record is an UPDATE, too: an INSERT would leave a row marker with its own
// TTL, and a row that exists without any value when a later record had a shorter one.
func newStatements(table string) statements {
	update := "UPDATE " + table + " USING TTL ?" +
		" SET owner = ?, revision = ?, state = ?, fencing_token = ?, lease_ms = ?, request = ?, " +
		"response = ?" +
		" WHERE namespace = ? AND id = ? IF owner = "
	return statements{
		get: "SELECT owner, revision, state, fencing_token, lease_ms, request, response FROM " +
			table + " WHERE namespace = ? AND id = ?",
		first: update + "null",
		next:  update + "? AND revision = ?",
	}
}

// parseRow reads the columns of the get statement. A row without an owner is no record.
func parseRow(row map[string]any) (record idempotency.Record, err error) {
	owner, _ := row["owner"].([]byte)
	if len(owner) == 0 {
		return record, nil
	}
	request, _ := row["request"].([]byte)
	state, _ := row["state"].(string)
	if len(owner) != len(record.Owner) || len(request) != len(record.Request) {
		return record, fmt.Errorf("%w: an owner of %d bytes, a request hash of %d",
			idempotency.ErrRecord, len(owner), len(request))
	}
	copy(record.Owner[:], owner)
	copy(record.Request[:], request)
	record.Revision, _ = row["revision"].(int64)
	record.Token, _ = row["fencing_token"].(int64)
	record.Response, _ = row["response"].([]byte)
	lease, _ := row["lease_ms"].(int64)
	record.Lease = time.Duration(lease) * time.Millisecond
	record.State, err = idempotency.ParseState(state)
	return record, err
}
