package postgres

import "strings"

// statements are the SQL of one table.
type statements struct {
	insert   string // claims that are free, returns which
	takeOver string // the same, and those whose rows have expired
	// both for claims that another store has made
	insertStanding   string
	takeOverStanding string
	page             string // rows behind an ID, in the order of IDs; expired ones, too
	find             string // read, with how long the claims live
	read             string // the owners of claims
	renew            string // puts off the ends of claims that are due, returns of which
	lookup           string // the owner of one
	release          string
	forget           string // some claims of a scope
	sweep            string // some expired claims
	late             string // for how many seconds there have been expired claims
}

// inIndexOrder is for the transactions that delete rows batch by batch: however many there are in
// all, each must read the first of them from the index and not sort them.
const inIndexOrder = `SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_seqscan', 'off', true)`

// durable stands in the FROM of statements whose outcome is answered: their transaction waits for
// the disk, also on a connection of a pooler on which another client has left that off. It changes
// nothing where the commit waits anyway.
const durable = `(SELECT CASE current_setting('synchronous_commit') WHEN 'off'
    THEN set_config('synchronous_commit', 'on', true) END) AS durable`

const ownerColumns = "owner_topic_id, owner_partition, owner_offset, owner_epoch, fingerprint, claimed_at"

func newStatements(table string) statements {
	in := func(sql string) string { return strings.ReplaceAll(sql, "{table}", table) }
	insert := in(`INSERT INTO {table} AS t (scope, message_id, ` + ownerColumns + `, expires_at)
SELECT $1::bigint, u.*, $8::timestamptz, statement_timestamp() + make_interval(secs => $9)
FROM unnest($2::bytea[], $3::uuid[], $4::int[], $5::bigint[], $6::int[], $7::bytea[]) AS u, ` + durable + `
ON CONFLICT (scope, message_id) DO `)
	insertStanding := in(`INSERT INTO {table} AS t (scope, message_id, ` + ownerColumns + `, expires_at)
SELECT $1::bigint, id, topic, part, place, era, print, claimed, statement_timestamp() + make_interval(secs => rest)
FROM unnest($2::bytea[], $3::uuid[], $4::int[], $5::bigint[], $6::int[], $7::bytea[], $8::timestamptz[], $9::float8[])
    AS u (id, topic, part, place, era, print, claimed, rest), ` + durable + `
ON CONFLICT (scope, message_id) DO `)
	const nothing = "NOTHING RETURNING message_id"
	const update = `UPDATE SET owner_topic_id = excluded.owner_topic_id, owner_partition = excluded.owner_partition,
    owner_offset = excluded.owner_offset, owner_epoch = excluded.owner_epoch, fingerprint = excluded.fingerprint,
    claimed_at = excluded.claimed_at, expires_at = excluded.expires_at
WHERE t.expires_at <= statement_timestamp() RETURNING message_id`
	const left = `, extract(epoch FROM expires_at - statement_timestamp())::float8`
	return statements{
		insert:           insert + nothing,
		takeOver:         insert + update,
		insertStanding:   insertStanding + nothing,
		takeOverStanding: insertStanding + update,
		page: in(`SELECT message_id, ` + ownerColumns + left + ` FROM {table}
WHERE scope = $1 AND message_id > $2 ORDER BY message_id LIMIT $3`),
		find: in(`SELECT message_id, ` + ownerColumns + left + ` FROM unnest($2::bytea[]) AS wanted(id) CROSS JOIN LATERAL (
    SELECT * FROM {table} WHERE scope = $1 AND message_id = wanted.id LIMIT 1) AS t
WHERE expires_at > statement_timestamp()`),
		// One descent of the index for each ID, whatever the planner knows: before the first
		// ANALYZE it takes a list of IDs for a large part of the table and reads all of the scope.
		read: in(`SELECT message_id, ` + ownerColumns + ` FROM unnest($2::bytea[]) AS wanted(id) CROSS JOIN LATERAL (
    SELECT * FROM {table} WHERE scope = $1 AND message_id = wanted.id LIMIT 1) AS t
WHERE expires_at > statement_timestamp()`),
		// The rows are locked in the order of the keys, as with claims. One that another
		// transaction has changed since the statement began is not found at its place, and left.
		renew: in(`WITH held AS MATERIALIZED (
    SELECT t.part, t.place FROM unnest($2::bytea[]) AS wanted(id) CROSS JOIN LATERAL (
        SELECT tableoid AS part, ctid AS place FROM {table} WHERE scope = $1 AND message_id = wanted.id
            AND expires_at > statement_timestamp()
            AND expires_at <= statement_timestamp() + make_interval(secs => $4::float8)
        LIMIT 1 FOR UPDATE) AS t)
UPDATE {table} AS t SET expires_at = statement_timestamp() + make_interval(secs => $3::float8)
FROM held, ` + durable + `
WHERE t.ctid = held.place AND t.tableoid = held.part RETURNING t.message_id`),
		lookup: in(`SELECT message_id, ` + ownerColumns + ` FROM {table}
WHERE scope = $1 AND message_id = $2 AND expires_at > statement_timestamp()`),
		release: in(`DELETE FROM {table} USING ` + durable + `
WHERE scope = $1 AND message_id = $2`),
		// The rows to delete are found by their place; in a table of several partitions places
		// repeat, hence tableoid. See inIndexOrder.
		forget: in(`WITH doomed AS MATERIALIZED (
    SELECT tableoid AS part, ctid AS place FROM {table} WHERE scope = $1 ORDER BY message_id LIMIT $2)
DELETE FROM {table} AS t USING doomed WHERE t.ctid = doomed.place AND t.tableoid = doomed.part`),
		late: in(`SELECT COALESCE(GREATEST(
    extract(epoch FROM statement_timestamp() - min(expires_at)), 0), 0)::float8 FROM {table}`),
		sweep: in(`WITH ended AS MATERIALIZED (
    SELECT tableoid AS part, ctid AS place FROM {table}
    WHERE expires_at <= LEAST(statement_timestamp(), $3) AND expires_at >= $1
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED),
deleted AS (
    DELETE FROM {table} AS t USING ended WHERE t.ctid = ended.place AND t.tableoid = ended.part RETURNING t.expires_at)
SELECT count(*), max(expires_at), max(statement_timestamp() - expires_at) FROM deleted`),
	}
}
