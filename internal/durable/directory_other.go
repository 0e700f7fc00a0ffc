//go:build !unix

package durable

// syncDirectory does nothing: elsewhere directories cannot be synced, and need not be.
func syncDirectory(string) error { return nil }
