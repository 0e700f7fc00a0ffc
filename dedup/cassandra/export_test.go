package cassandra

import "testing"

// ReadRow runs a query as an operator does in cqlsh and returns its only row.
func ReadRow(t *testing.T, o Options, query string) map[string]any {
	t.Helper()
	session, err := o.connect(o.Keyspace)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	rows, err := session.Query(query).WithContext(t.Context()).Iter().SliceMap()
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[0]
}
