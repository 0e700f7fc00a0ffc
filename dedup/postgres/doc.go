// Package postgres keeps claims in a PostgreSQL table, one INSERT for many IDs.
//
// The claims of a call are sorted by their key and cut into batches. Each batch is one INSERT …
// SELECT unnest(…) … ON CONFLICT DO NOTHING, which returns the claims that it applied, and one
// SELECT for the owners of the others. They are two statements on purpose: the INSERT waits for a
// transaction that holds one of its IDs, but its snapshot is older than that transaction's end, so
// a SELECT inside it would find no owner. The second statement has a snapshot of its own.
//
// A row whose expires_at is past counts as free. It is neither an owner for the SELECT nor free for
// the INSERT, so what neither of them decided goes out again as ON CONFLICT DO UPDATE … WHERE the
// row has expired, which takes it over. The first INSERT is no such statement, because that writes
// a lock into every row that it finds. The server's clock decides what has expired, and no other.
//
// Every statement is a transaction of its own, and every batch locks its IDs in the order of their
// keys, so no two can wait for each other.
//
// TxClaims makes claims in transactions of the caller, for consumers whose effect is a row.
package postgres
