package testkit

import (
	"strings"
	"testing"
)

// Cassandra takes names of 48 bytes at most.
const maxKeyspacePart = 48 - len("t_") - len("_12345678")

// Keyspace returns the name of a keyspace that no other test uses; it does not create it. The name
// shows the test's.
func Keyspace(t testing.TB) string {
	t.Helper()
	part := strings.Map(keyspaceRune, t.Name())
	part = part[:min(len(part), maxKeyspacePart)]
	return "t_" + part + "_" + suffix()
}

// keyspaceRune maps to what a name may hold without quotes.
func keyspaceRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return r
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	}
	return '_'
}
