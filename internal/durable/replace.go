// Package durable writes files that a crash leaves whole.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Suffix marks files that Replace did not finish. They may be deleted while it does not run.
const Suffix = ".new"

// Replace gives a file other content. After a crash it has the old or the new one; after a return,
// the new one, and whatever was made in the same directory before is there too.
func Replace(disk Disk, name string, content []byte) error {
	if err := replace(disk, name, content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func replace(disk Disk, name string, content []byte) error {
	if err := disk.Remove(name + Suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := disk.Create(name + Suffix)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = disk.Rename(name+Suffix, name)
	}
	if err != nil {
		return err
	}
	return disk.SyncDirectory(filepath.Dir(name))
}
