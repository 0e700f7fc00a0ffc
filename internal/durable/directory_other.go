//go:build !unix

package durable

// SyncDirectory does nothing: elsewhere directories cannot be synced, and need not be.
func SyncDirectory(string) error { return nil }
