// Package cassandra keeps claims in a Cassandra table, one lightweight transaction for many IDs.
//
// The claims of a scope are spread over buckets; a bucket is one table partition. All claims of a
// call that fall into one bucket go out as one conditional batch, which costs a single Paxos round.
// The batch applies as a whole or, when some of its IDs exist, not at all; the answer then lists
// the existing rows, and the rest goes out again. Every round decides at least one claim.
//
// Rows are written by lightweight transactions only and never updated: an update without the TTL
// would keep a claim for ever, and plain writes next to Paxos writes are lost or resurrected.
package cassandra
