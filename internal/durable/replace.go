// Package durable writes files that a crash leaves whole.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Suffix marks files that Replace did not finish. They may be deleted while it does not run.
const Suffix = ".new"

// Replace gives a file other content. After a crash it has the old or the new one; after a return, the
// new one, and whatever was made in the same directory before is there too.
func Replace(name string, content []byte) error {
	if err := replace(name, content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func replace(name string, content []byte) error {
	file, err := os.OpenFile(name+Suffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return err
	}
	return SyncDirectory(filepath.Dir(name))
}
