// Package memory is a dedup.Store for tests: a map behind a mutex, with a clock and faults that the
// test controls. It forgets everything when the process ends and is not for production.
package memory
