// Package cqltest is a server of Cassandra's native protocol, version 4, that answers as other
// servers document that they do. It keeps kdedup's two tables in memory and knows the statements
// that the store sends; it decides nothing by Paxos, for there is one of it. What a real server
// does, only a real server can tell.
package cqltest

import "fmt"

// Dialect is in what a server differs from Cassandra. The zero value is Cassandra.
type Dialect struct {
	ClusterName string   // as in system.local
	Peers       []string // the data centres of other nodes, which do not answer

	// ListsEveryStatement: the answer to a conditional statement or batch has one row for each
	// statement, in their order, with all columns: the row as it was before, or nulls. Also when it
	// was applied.
	ListsEveryStatement bool

	// UnconditionalBatches: conditions in batches are refused, and so are more than 30 statements.
	UnconditionalBatches bool

	// NoSerial: only ONE, LOCAL_ONE and LOCAL_QUORUM exist, and no level of a Paxos round.
	NoSerial bool

	// ExpiredRowsStand: a conditional insert still meets rows whose TTL is over.
	ExpiredRowsStand bool

	// Refusal is the error of every conditional statement. Empty: none.
	Refusal string
}

// ScyllaDB answers as docs/kb/lwt-differences.rst and cas_request::build_cas_result_set of its
// repository say.
var ScyllaDB = Dialect{ClusterName: "scylla", ListsEveryStatement: true}

// ScyllaTablets is ScyllaDB before 2025.4 with a keyspace of tablets; the text is that of its issue
// 18068.
var ScyllaTablets = Dialect{
	ClusterName: "scylla", ListsEveryStatement: true,
	Refusal: "Cannot use LightWeight Transactions for table processed_messages: LWT is not yet " +
		"supported with tablets",
}

// Keyspaces is Amazon Keyspaces, as its developer guide describes it on the pages
// functional-differences and consistency.
var Keyspaces = Dialect{ClusterName: "Amazon Keyspaces", UnconditionalBatches: true, NoSerial: true}

// CosmosDB is Azure Cosmos DB for Apache Cassandra, as the limitations on its page
// lightweight-transactions describe it.
var CosmosDB = Dialect{ClusterName: "cosmosdb", ExpiredRowsStand: true}

const maxUnconditional = 30

// check refuses what the server does not know.
func (d Dialect) check(s statement, l levels) error {
	switch {
	case d.NoSerial && l.consistency != one && l.consistency != localOne &&
		l.consistency != localQuorum, d.NoSerial && l.serial != 0:
		return invalid("consistency level %d/%d is not supported for this operation. Supported "+
			"consistency levels are: ONE, LOCAL_QUORUM, LOCAL_ONE",
			l.consistency, l.serial)
	case d.UnconditionalBatches && s.kind == "batch" &&
		(s.conditional || len(s.batch) > maxUnconditional):
		return invalid("Only unconditional statements are permitted in a batch, %d at most",
			maxUnconditional)
	case d.Refusal != "" && s.conditional:
		return invalid("%s", d.Refusal)
	}
	return nil
}

// invalidError goes out as an error of the code Invalid.
type invalidError struct{ text string }

func (e invalidError) Error() string { return e.text }

func invalid(format string, args ...any) error { return invalidError{fmt.Sprintf(format, args...)} }
