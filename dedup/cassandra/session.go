package cassandra

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocql/gocql"
)

// Session is a connection for whoever keeps other tables in the keyspace, and decides by
// conditional statements as well.
type Session struct{ s *Store }

// Connect looks at the cluster, as Open does, and at no table. Options.Table, InFlight and
// BatchClaims are not used.
func Connect(ctx context.Context, options Options) (*Session, error) {
	s, err := dial(ctx, options)
	if err != nil {
		return nil, err
	}
	if s.levels.paxos == 0 {
		_ = s.Close()
		return nil, errors.New("open store: cassandra: the server is " + amazonKeyspaces +
			", which takes no conditions in batches: set store.cassandra.layout to rows")
	}
	return &Session{s}, nil
}

// Close ends all connections.
func (s *Session) Close() { _ = s.s.Close() }

// Fit is why the cluster cannot decide any more, though it could when the session began.
func (s *Session) Fit() error { return s.s.watch.Err() }

// Driver is the session for packages that make their statements themselves, and the level of their
// Paxos rounds. Close closes it.
func (s *Session) Driver() (*gocql.Session, gocql.SerialConsistency) {
	return s.s.session, s.s.levels.paxos
}

// Read is a statement that sees what was committed before it, and maybe not what is being decided.
func (s *Session) Read(ctx context.Context, statement string, values ...any) *gocql.Query {
	return s.s.session.Query(statement, values...).WithContext(ctx)
}

// Serial is a read that sees every decided statement, and completes one that is in flight.
func (s *Session) Serial(ctx context.Context, statement string, values ...any) *gocql.Query {
	return s.Read(ctx, statement, values...).Consistency(s.s.levels.read)
}

// Conditional is a statement with an IF.
func (s *Session) Conditional(ctx context.Context, statement string, values ...any) *gocql.Query {
	return s.s.conditional(ctx, statement, values...)
}

// ConditionalBatch runs statements of one partition, all or none, and tells whether it did.
func (s *Session) ConditionalBatch(
	ctx context.Context, fill func(add func(statement string, values ...any)),
) (applied bool, err error) {
	batch := s.s.session.NewBatch(gocql.UnloggedBatch).WithContext(ctx).
		SerialConsistency(s.s.levels.paxos)
	fill(batch.Query)
	row := make(map[string]any)
	applied, iter, err := s.s.session.MapExecuteBatchCAS(batch, row)
	if iter != nil {
		err = errors.Join(err, iter.Close())
	}
	return applied, err
}

// CheckTable refuses a table of the keyspace that is missing, has other columns, which are in the
// order of their names, or that cannot decide.
func (s *Session) CheckTable(ctx context.Context, table string, columns []string) error {
	if err := s.s.checkColumns(ctx, table, columns); err != nil {
		return err
	}
	return s.s.checkAccord(ctx, table)
}

// CheckRights returns an error for each table on which the user lacks a right that decisions need.
// It is told a key in each that no row has.
func (s *Session) CheckRights(ctx context.Context, keys map[string]string) error {
	tables := make(map[string]string)
	for table, key := range keys {
		tables[s.s.options.Quoted(table)] = key
	}
	return s.s.checkRights(ctx, tables)
}

// Table is one to create. Its definition is all behind its name, and has options.
type Table struct{ Name, Definition string }

// SetupTables creates the keyspace and the tables where they are missing, as Setup does.
func SetupTables(
	ctx context.Context, o Options, replication string, tables []Table, dryRun bool,
	say func(string),
) error {
	return o.setup(ctx, func(version string) []step {
		steps := []step{o.keyspaceStep(replication)}
		for _, t := range tables {
			table := o.step("table "+o.shown(t.Name), "tables", "table_name", t.Name)
			table.create = fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s %s%s", o.Quoted(t.Name),
				t.Definition,
				withoutAccord(version))
			steps = append(steps, table)
		}
		return steps
	}, dryRun, say)
}
