// Package cassandra is an idempotency.Store in a Cassandra table, by lightweight transactions.
//
// A key is a partition of one row. Every record is an UPDATE … IF owner = … AND revision = … that
// writes all columns with the TTL again. Nothing else writes to the table: plain writes beside
// Paxos writes are lost or resurrected. Records are read at the serial consistency, which completes
// what is in flight.
//
// The timestamps of the cells are Paxos ballots, and leases are measured by the callers' own clocks
// (see package idempotency), so no clock of a server is compared with one of a client. A TTL is
// measured by each replica: replicas whose clocks differ by a second forget a key a second apart.
//
// With the default LOCAL_SERIAL a key is claimed once per data centre: two data centres that both
// take requests run a function twice. Choose SERIAL there, or send a key always to the same data
// centre. Set paxos_variant: v2 in cassandra.yaml: it halves the round trips.
//
// Answers are read by the names of their columns, of which ScyllaDB documents more than Cassandra
// gives; no test runs on ScyllaDB. Amazon Keyspaces refuses serial reads, and so this store.
package cassandra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/idempotency"
)

// DefaultTable is the table of Options that name none.
const DefaultTable = "idempotency_keys"

// Options may all be left zero.
type Options struct {
	// optionally with its keyspace: "billing.keys"; "": DefaultTable, in the session's keyspace. As
	// everywhere in CQL, capitals count only in names with quotes around them.
	Table  string
	Serial gocql.SerialConsistency // of the Paxos rounds; 0: LOCAL_SERIAL
	// of what Paxos decided; 0: the session's, for which choose LOCAL_QUORUM, or QUORUM beside
	// SERIAL
	Commit gocql.Consistency
}

// Store is an idempotency.Store on a gocql session. Any number of processes may share its table.
type Store struct {
	session *gocql.Session
	options Options
	sql     statements
}

var _ idempotency.Store = (*Store)(nil)

// Open checks that the table is there; Setup makes it. The session stays the caller's.
func Open(ctx context.Context, session *gocql.Session, o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{session: session, options: o, sql: newStatements(o.quotedTable())}
	if _, err := s.Get(ctx, idempotency.Key{ID: "\x00"}); err != nil {
		return nil, fmt.Errorf("open idempotency store: cassandra: table %s; create it with "+
			"cassandra.Setup or with the statement of cassandra.Schema: %w", o.Table, err)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Table == "" {
		o.Table = DefaultTable
	}
	if o.Serial == 0 {
		o.Serial = gocql.LocalSerial
	}
	return o
}

// Get implements idempotency.Store with a serial read.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	query := s.session.Query(s.sql.get, []byte(key.Namespace), []byte(key.ID)).
		WithContext(ctx).RetryPolicy(nil).Consistency(gocql.Consistency(s.options.Serial))
	row, found, err := onlyRow(query)
	if err != nil || !found {
		return idempotency.Record{}, wrap("get", err)
	}
	record, err := parseRow(row)
	return record, wrap("get", err)
}

// Swap implements idempotency.Store.
func (s *Store) Swap(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	row, err := s.conditional(ctx, s.query(key, old, next, ttl))
	if err != nil {
		return current, false, wrap("swap", err)
	}
	if applied, ok := row["[applied]"].(bool); !ok || applied {
		if !ok {
			err = wrap("swap",
				errors.New(
					"the answer to a conditional statement does not say whether it was applied"))
		}
		return current, ok && err == nil, err
	}
	// A refusal tells only the columns of its condition.
	current, err = s.Get(ctx, key)
	return current, false, err
}

func (s *Store) query(
	key idempotency.Key, old idempotency.Version, next idempotency.Record, ttl time.Duration,
) *gocql.Query {
	values := []any{
		seconds(ttl), next.Owner[:], next.Revision, next.State.String(), next.Token,
		next.Lease.Milliseconds(),
		next.Request[:], nonNil(next.Response), []byte(key.Namespace), []byte(key.ID),
	}
	if old == (idempotency.Version{}) {
		return s.session.Query(s.sql.first, values...)
	}
	return s.session.Query(s.sql.next, append(values, old.Owner[:], old.Revision)...)
}

// seconds rounds up, and one more: Cassandra drops the fraction of the second in which it writes.
func seconds(ttl time.Duration) int { return int((ttl+time.Second-1)/time.Second) + 1 }

// conditional runs a lightweight transaction. The driver must not repeat it: the executor does, and
// recognises what was applied.
func (s *Store) conditional(ctx context.Context, query *gocql.Query) (map[string]any, error) {
	query = query.WithContext(ctx).RetryPolicy(nil).SerialConsistency(
		s.options.Serial).DefaultTimestamp(false)
	if s.options.Commit != 0 {
		query = query.Consistency(s.options.Commit)
	}
	row, _, err := onlyRow(query)
	return row, err
}

// onlyRow reads the answer by names: the columns of a conditional answer differ from one to the
// next.
func onlyRow(query *gocql.Query) (row map[string]any, found bool, err error) {
	iter := query.NoSkipMetadata().Iter()
	row = make(map[string]any)
	found = iter.MapScan(row)
	return row, found, iter.Close()
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: cassandra: %w", operation, err)
}

// nonNil keeps a null, which is a tombstone, out of the table.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
