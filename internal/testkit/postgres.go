package testkit

import "testing"

// Schema returns the name of a schema that no other test uses; it does not create it. The name
// shows the test's.
func Schema(t testing.TB) string {
	t.Helper()
	return Keyspace(t) // the same letters, and shorter than the 63 bytes of PostgreSQL
}
