package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gocql/gocql"
)

// schemaTimeout bounds one change of the schema, which every node has to take over. On a busy
// cluster that takes longer than a claim may.
const schemaTimeout = time.Minute

// Grace is the table's gc_grace_seconds: how long a claim stays on disk after its end, at least. It
// is as long as Paxos state lives at least; nothing is deleted but by expiry and by a conditional
// delete, so longer would only cost space.
const Grace = 3 * time.Hour

// Setup creates the keyspace, the type and the tables where they are missing and reports each step
// through say. It changes nothing that exists, so it may be repeated. With dryRun it only says what
// it would do. Replication is the CQL map that a new keyspace gets.
func Setup(
	ctx context.Context, o Options, replication string, dryRun bool, say func(string),
) error {
	return o.setup(ctx, func(version string) []step {
		return o.steps(version, replication)
	}, dryRun, say)
}

// setup does the steps that a server of a version needs.
func (o Options) setup(
	ctx context.Context, steps func(version string) []step, dryRun bool, say func(string),
) error {
	session, err := o.connectFor("", max(o.Timeout, schemaTimeout))
	if err != nil {
		return fmt.Errorf("set up store: cassandra %v: %w", o.Hosts, o.explainLocalDC(ctx, err))
	}
	defer session.Close()
	version, err := releaseVersion(ctx, session)
	if err != nil {
		return err
	}
	for _, step := range steps(version) {
		there, err := step.exists(ctx, session)
		if err != nil {
			return fmt.Errorf("set up store: cassandra: look for %s: %w", step.what, err)
		}
		switch {
		case there:
			say(step.what + " exists")
			continue
		case dryRun:
			say("would create " + step.what + ":\n  " + step.create)
			continue
		}
		if err := session.Query(step.create).WithContext(ctx).Exec(); err != nil {
			return fmt.Errorf("set up store: cassandra: create %s: %w", step.what, err)
		}
		say("created " + step.what)
	}
	return o.tellFolded(ctx, session, say)
}

// tellFolded tells of a keyspace that a setup of an earlier version made by mistake: it did not
// quote the name, and CQL made small letters of the capitals.
func (o Options) tellFolded(ctx context.Context, session *gocql.Session, say func(string)) error {
	folded := o
	if folded.Keyspace = strings.ToLower(o.Keyspace); folded.Keyspace == o.Keyspace {
		return nil
	}
	there, err := folded.step("", "types", "type_name", "claim_owner").exists(ctx, session)
	if err != nil {
		return fmt.Errorf("set up store: cassandra: look for keyspace %s: %w", folded.Keyspace, err)
	}
	if there {
		say(fmt.Sprintf("keyspace %s is not used: a setup of an earlier version may have made it "+
			"of the name %s", folded.Keyspace, o.Keyspace))
	}
	return nil
}

// step is one thing to create and the system table that knows whether it is there.
type step struct {
	what   string
	create string
	look   string
	names  []any
}

func (s step) exists(ctx context.Context, session *gocql.Session) (bool, error) {
	iter := session.Query(s.look, s.names...).WithContext(ctx).Consistency(gocql.LocalOne).Iter()
	rows := iter.NumRows()
	return rows > 0, iter.Close()
}

func (o Options) steps(version, replication string) []step {
	owner := o.step("type "+o.shown("claim_owner"), "types", "type_name", "claim_owner")
	owner.create = "CREATE TYPE IF NOT EXISTS " + o.Quoted("claim_owner") + " " +
		`(topic_id uuid, "partition" int, "offset" bigint, epoch int, fingerprint blob, claimed_at timestamp)`
	claims := o.step("table "+o.shown(o.Table), "tables", "table_name", o.Table)
	claims.create = o.createClaims(version)
	settings := o.step("table "+o.shown(scopes), "tables", "table_name", scopes)
	settings.create = "CREATE TABLE IF NOT EXISTS " + o.scopesTable() +
		" (consumer_group text, topic text, buckets int, extractor text, PRIMARY KEY " +
		"((consumer_group, topic)))"
	return []step{o.keyspaceStep(replication), owner, claims, settings}
}

// step looks for something of the keyspace by its name in a table of the schema.
func (o Options) step(what, table, column, name string) step {
	return step{
		what: what,
		look: "SELECT keyspace_name FROM system_schema." + table +
			" WHERE keyspace_name = ? AND " + column + " = ?",
		names: []any{o.Keyspace, name},
	}
}

func (o Options) keyspaceStep(replication string) step {
	return step{
		what: "keyspace " + o.Keyspace,
		create: "CREATE KEYSPACE IF NOT EXISTS " + quoted(o.Keyspace) + " WITH replication = " +
			replication,
		look:  "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?",
		names: []any{o.Keyspace},
	}
}

// createClaims is the claim table. Levelled compaction keeps the SSTables that hold a bucket few:
// an absent ID is looked up in each of them, because a partition's Bloom filter cannot tell that
// one of its rows is missing.
func (o Options) createClaims(version string) string {
	compaction := "{'class': 'LeveledCompactionStrategy'}"
	major, _, _ := strings.Cut(version, ".")
	if atLeast(major, 5) {
		compaction = "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L8'}"
	}
	return "CREATE TABLE IF NOT EXISTS " + o.qualifiedTable() +
		" (consumer_group text, topic text, bucket int, message_id blob, owner " +
		"frozen<claim_owner>," +
		" PRIMARY KEY ((consumer_group, topic, bucket), message_id))" +
		" WITH compaction = " + compaction +
		" AND default_time_to_live = 604800 AND gc_grace_seconds = " +
		strconv.Itoa(int(Grace.Seconds())) + withoutAccord(version)
}

// withoutAccord is the option of a table that must not go through Accord, whatever the server's
// default is.
func withoutAccord(version string) string {
	if major, _, _ := strings.Cut(version, "."); atLeast(major, accordSince) {
		return " AND transactional_mode = 'off'"
	}
	return ""
}

func atLeast(major string, want int) bool {
	n, err := strconv.Atoi(major)
	return err == nil && n >= want
}

func releaseVersion(ctx context.Context, session *gocql.Session) (string, error) {
	var version string
	if err := session.Query("SELECT release_version FROM system.local").WithContext(ctx).Scan(
		&version,
	); err != nil {
		return "", fmt.Errorf("cassandra: read the server's version: %w", err)
	}
	return version, nil
}

// explainNoConnection finds out why no connection could use the keyspace: the driver does not say.
func (o Options) explainNoConnection(ctx context.Context, err error) error {
	session, connectErr := o.connect("")
	if connectErr != nil {
		return connectErr
	}
	defer session.Close()
	there, lookErr := o.keyspaceStep("").exists(ctx, session)
	if lookErr == nil && !there {
		return &missingError{what: "keyspace " + o.Keyspace}
	}
	return errors.Join(err, lookErr)
}

// checkSchema compares the columns of the claim table with those that the statements use.
func (s *Store) checkSchema(ctx context.Context) error {
	for _, want := range []struct {
		table   string
		columns []string
	}{
		{s.options.Table, []string{"bucket", "consumer_group", "message_id", "owner", "topic"}},
		{scopes, []string{"buckets", "consumer_group", "extractor", "topic"}},
	} {
		if err := s.checkColumns(ctx, want.table, want.columns); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) checkColumns(ctx context.Context, table string, want []string) error {
	have, err := s.columns(ctx, table)
	switch {
	case err != nil:
		return fmt.Errorf("read the schema: %w", err)
	case len(have) == 0:
		return &missingError{what: "table " + s.options.shown(table)}
	case !slices.Equal(have, want):
		return fmt.Errorf("table %s has the columns %v, want %v: name another table in "+
			"store.cassandra.table", s.options.shown(table), have, want)
	}
	return nil
}

func (s *Store) columns(ctx context.Context, table string) ([]string, error) {
	iter := s.session.Query("SELECT column_name FROM system_schema.columns WHERE keyspace_name = "+
		"? AND table_name = ?",
		s.options.Keyspace, table).WithContext(ctx).Consistency(gocql.LocalOne).Iter()
	var (
		names []string
		name  string
	)
	for iter.Scan(&name) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, iter.Close()
}
