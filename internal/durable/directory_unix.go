//go:build unix

package durable

import (
	"errors"
	"os"
)

// syncDirectory makes durable which files a directory has.
func syncDirectory(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
