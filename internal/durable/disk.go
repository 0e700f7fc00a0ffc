package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// File is a file to which bytes are appended.
type File interface {
	io.ReaderAt
	io.Writer
	io.Closer
	Sync() error
}

// Disk changes files and directories; they are read with package os. A file keeps after a power cut
// what was written before its last Sync, and a directory the names that it had at its last
// SyncDirectory. Of what came later each part may be there or not, whatever the order in which it
// was done.
type Disk interface {
	Create(name string) (File, error) // a file that does not exist
	Append(name string) (File, error) // to a file that exists
	Rename(from, to string) error
	Remove(name string) error        // a file or an empty directory
	MakeDirectory(name string) error // in one that exists
	SyncDirectory(name string) error
}

// System is the operating system's Disk. Only the user of the process may read what it makes.
type System struct{}

// Create implements Disk.
func (System) Create(name string) (File, error) {
	return open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Append implements Disk.
func (System) Append(name string) (File, error) { return open(name, os.O_RDWR|os.O_APPEND) }

func open(name string, flag int) (File, error) {
	file, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err // and no File that holds a nil pointer
	}
	return file, nil
}

// Rename implements Disk.
func (System) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements Disk.
func (System) Remove(name string) error { return os.Remove(name) }

// MakeDirectory implements Disk.
func (System) MakeDirectory(name string) error { return os.Mkdir(name, 0o700) }

// SyncDirectory implements Disk.
func (System) SyncDirectory(name string) error { return syncDirectory(name) }

// MakeDirectories makes a directory durable, with those above it that are missing.
func MakeDirectories(disk Disk, name string) error {
	name = filepath.Clean(name)
	if isDirectory(name) {
		// it may be there since a moment before a crash
		return disk.SyncDirectory(filepath.Dir(name))
	}
	return makeMissing(disk, name)
}

func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func makeMissing(disk Disk, name string) error {
	if isDirectory(name) {
		return nil
	}
	parent := filepath.Dir(name)
	if parent != name {
		if err := makeMissing(disk, parent); err != nil {
			return err
		}
	}
	if err := disk.MakeDirectory(name); err != nil {
		return err
	}
	return disk.SyncDirectory(parent)
}

// RemoveDirectory deletes a directory that holds only files. A crash may leave some of it.
func RemoveDirectory(disk Disk, name string) error {
	files, err := os.ReadDir(name)
	for _, file := range files {
		err = errors.Join(err, disk.Remove(filepath.Join(name, file.Name())))
	}
	if err != nil {
		return err
	}
	return disk.Remove(name)
}
