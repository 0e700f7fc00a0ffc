package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// setupLock is the advisory lock that lets one Setup in a database run at a time: two that create
// the same thing would both not see it and one would fail.
const setupLock = 0x6b64656475700000

// Setup creates the schema, the tables and the index where they are missing, in one transaction,
// and reports each step through say. It changes nothing that exists, so it may be repeated. With
// dryRun it only says what it would do.
func Setup(ctx context.Context, o Options, dryRun bool, say func(string)) error {
	o = o.withDefaults()
	pool, err := o.connect(ctx, nil)
	if err != nil {
		return fmt.Errorf("set up store: postgres %v: %w", o.Hosts, err)
	}
	defer pool.Close()
	var said []string // what a transaction that fails has created is not there
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(
			ctx, "SELECT pg_advisory_xact_lock($1)", int64(setupLock),
		); err != nil {
			return err
		}
		said, err = o.create(ctx, tx, dryRun)
		return err
	})
	if err != nil {
		return fmt.Errorf("set up store: postgres %v: %w", o.Hosts, explain(ctx, err))
	}
	for _, line := range said {
		say(line)
	}
	return nil
}

func (o Options) create(ctx context.Context, tx pgx.Tx, dryRun bool) (said []string, err error) {
	for _, step := range o.steps() {
		var there bool
		if err := tx.QueryRow(ctx, step.look).Scan(&there); err != nil {
			return nil, fmt.Errorf("look for %s: %w", step.what, err)
		}
		switch {
		case there:
			said = append(said, step.what+" exists")
			continue
		case dryRun:
			said = append(said, "would create "+step.what+":\n  "+step.create)
			continue
		}
		if _, err := tx.Exec(ctx, step.create); err != nil {
			return nil, fmt.Errorf("create %s: %w", step.what, err)
		}
		said = append(said, "created "+step.what)
	}
	return said, nil
}

// step is one thing to create and the question whether it is there.
type step struct{ what, create, look string }

// steps are in the order of their dependence. Names are plain words, see package config.
func (o Options) steps() []step {
	relation := func(kind, name string) step {
		look := "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = " +
			"c.relnamespace WHERE n.nspname = %s AND c.relname = %s)"
		return step{what: kind + " " + o.Schema + "." + name,
			look: fmt.Sprintf(look, literal(o.Schema), literal(name))}
	}
	schema := step{
		what:   "schema " + o.Schema,
		create: "CREATE SCHEMA " + pgx.Identifier{o.Schema}.Sanitize(),
		look: "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = " + literal(o.Schema) +
			")",
	}
	claims := relation("table", o.Table)
	claims.create = o.createClaims()
	index := relation("index", o.expiryIndex())
	index.create = "CREATE INDEX " + pgx.Identifier{o.expiryIndex()}.Sanitize() + " ON " +
		o.claimsTable() + " (expires_at)"
	scopes := relation("table", "dedup_scopes")
	scopes.create = "CREATE TABLE " + o.scopesTable() + ` (
    scope bigint PRIMARY KEY, consumer_group text NOT NULL, topic text NOT NULL,
    buckets integer NOT NULL, extractor text NOT NULL)`
	return []step{schema, claims, index, scopes}
}

func (o Options) expiryIndex() string { return o.Table + "_expires_at" }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// createClaims is the claim table; columns of fixed width come first, in the order that needs no
// padding. Rows are inserted and deleted and hardly ever updated, so pages are filled up. Vacuum
// comes when 2 % of the rows are deleted: the default of 20 % is more than a day's claims of seven.
func (o Options) createClaims() string {
	return "CREATE TABLE " + o.claimsTable() + ` (
    scope bigint NOT NULL, expires_at timestamptz NOT NULL, claimed_at timestamptz NOT NULL,
    owner_offset bigint NOT NULL, owner_partition integer NOT NULL, owner_epoch integer NOT NULL,
    owner_topic_id uuid NOT NULL, fingerprint bytea NOT NULL, message_id bytea NOT NULL,
    PRIMARY KEY (scope, message_id)
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)`
}

// checkSchema compares the server and the tables with what the statements need.
func checkSchema(ctx context.Context, pool *pgxpool.Pool, o Options) error {
	var version int
	if err := pool.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(
		&version,
	); err != nil {
		return err
	}
	if version < 130000 {
		return unfit("the server has version %d.%d, 13 is the oldest that works",
			version/10000, version%10000)
	}
	for _, want := range []struct {
		name, table string
		columns     []string
	}{
		{o.Table, o.claimsTable(), []string{
			"claimed_at timestamp with time zone", "expires_at timestamp with time zone",
			"fingerprint bytea", "message_id bytea",
			"owner_epoch integer", "owner_offset bigint", "owner_partition integer",
			"owner_topic_id uuid", "scope bigint",
		}},
		{"dedup_scopes", o.scopesTable(), []string{"buckets integer", "consumer_group text",
			"extractor text", "scope bigint", "topic text"}},
	} {
		have, err := columns(ctx, pool, want.table)
		switch {
		case err != nil:
			return fmt.Errorf("read the schema: %w", err)
		case len(have) == 0:
			return &missingError{what: "table " + o.Schema + "." + want.name}
		case !slices.Equal(have, want.columns):
			return unfit("table %s.%s has the columns %v, want %v: name another table in "+
				"store.postgres.table",
				o.Schema, want.name, have, want.columns)
		}
		if err := checkRights(ctx, pool, want.table); err != nil {
			return err
		}
	}
	return checkClaims(ctx, pool, o)
}

func columns(ctx context.Context, pool *pgxpool.Pool, table string) ([]string, error) {
	rows, err := pool.Query(ctx, `SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attname`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// checkRights finds out now what would otherwise fail in the middle of work.
func checkRights(ctx context.Context, pool *pgxpool.Pool, table string) error {
	for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
		var granted bool
		var user string
		if err := pool.QueryRow(
			ctx, "SELECT has_table_privilege($1, $2), current_user", table, right,
		).Scan(&granted, &user); err != nil {
			return fmt.Errorf("read the rights on %s: %w", table, err)
		}
		if !granted {
			return unfit(
				"%s may not %s; run: GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %s",
				user, right, table, pgx.Identifier{user}.Sanitize())
		}
	}
	return nil
}

// checkClaims looks for what makes an ID unique, and durable.
func checkClaims(ctx context.Context, pool *pgxpool.Pool, o Options) error {
	var logged, unique bool
	err := pool.QueryRow(ctx, `SELECT c.relpersistence = 'p', EXISTS (
    SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 2
    AND pg_get_indexdef(i.indexrelid, 1, true) = 'scope' AND pg_get_indexdef(i.indexrelid, 2, true) = 'message_id')
FROM pg_class c WHERE c.oid = to_regclass($1)`, o.claimsTable()).Scan(&logged, &unique)
	switch {
	case err != nil:
		return fmt.Errorf("read the schema: %w", err)
	case !logged:
		return unfit("table %s.%s is unlogged, a crash of the server empties it; run: ALTER "+
			"TABLE %s SET LOGGED", o.Schema, o.Table, o.claimsTable())
	case !unique:
		return unfit("table %s.%s has no unique index on (scope, message_id): name another "+
			"table in store.postgres.table", o.Schema, o.Table)
	}
	return nil
}
