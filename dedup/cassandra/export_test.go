package cassandra

import (
	"testing"
	"time"

	"github.com/gocql/gocql"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kdedup/kdedup/dedup"
)

// DriverSession is one of the driver, beside the store's.
func DriverSession(t *testing.T, o Options) *gocql.Session {
	t.Helper()
	session, err := o.connect(o.Keyspace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// ReadRow runs a query as an operator does in cqlsh and returns its only row.
func ReadRow(t *testing.T, o Options, query string) map[string]any {
	t.Helper()
	rows, err := DriverSession(t, o).Query(query).WithContext(t.Context()).Iter().SliceMap()
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[0]
}

// Exec runs a statement as another program does.
func Exec(t *testing.T, o Options, statement string) {
	t.Helper()
	if err := DriverSession(t, o).Query(statement).WithContext(t.Context()).Exec(); err != nil {
		t.Fatal(err)
	}
}

// Requests counts what was asked of the server for claims.
func Requests(s *Store) float64 { return testutil.ToFloat64(s.metrics.requests) }

// WatchEvery has the watch look in other pauses.
func (s *Store) WatchEvery(pause time.Duration) {
	s.watch.Close()
	s.watch = dedup.NewWatch(pause, s.stillFit)
}

// WatchEvery does so in a session.
func (s *Session) WatchEvery(pause time.Duration) { s.s.WatchEvery(pause) }
