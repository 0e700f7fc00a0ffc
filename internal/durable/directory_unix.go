//go:build unix

package durable

import (
	"errors"
	"os"
)

// SyncDirectory makes durable which files a directory has.
func SyncDirectory(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
