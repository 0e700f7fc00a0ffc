// Package crashpoint lets a test kill the process at a named point of its work, as kill -9 does.
//
// Only a binary that was built with -tags crashpoints has these points. It reads
//
//	KDEDUP_CRASH_AT=batch-claimed#3
//
// when it starts, and ends when it comes to that point for the third time. Without the tag, At is
// empty and Hooks returns nothing.
package crashpoint
