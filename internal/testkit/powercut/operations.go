package powercut

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/kdedup/kdedup/internal/durable"
)

func split(relative string) []string {
	if relative == "." {
		return nil
	}
	return strings.Split(relative, string(filepath.Separator))
}

// openFile is a real file beside the simulated one.
type openFile struct {
	*os.File
	disk *Disk
	file *file
}

// Create implements durable.Disk.
func (d *Disk) Create(name string) (durable.File, error) {
	var opened *openFile
	err := d.do(false, func() error {
		in, last, err := d.parent(name)
		if err != nil {
			return err
		}
		real, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		opened = &openFile{File: real, disk: d, file: &file{}}
		in.change(change{add: last, node: opened.file})
		return nil
	})
	return opened.orClosed(err)
}

// Append implements durable.Disk.
func (d *Disk) Append(name string) (durable.File, error) {
	var opened *openFile
	err := d.do(false, func() error {
		in, last, err := d.parent(name)
		if err != nil {
			return err
		}
		node, ok := in.seen[last].(*file)
		if !ok {
			return &os.PathError{Op: "append to", Path: name, Err: os.ErrNotExist}
		}
		real, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
		opened = &openFile{File: real, disk: d, file: node}
		return err
	})
	return opened.orClosed(err)
}

// orClosed returns the file, unless there was an error.
func (f *openFile) orClosed(err error) (durable.File, error) {
	if err == nil {
		return f, nil
	}
	if f != nil && f.File != nil {
		err = errors.Join(err, f.File.Close())
	}
	return nil, err
}

// Write appends.
func (f *openFile) Write(p []byte) (n int, err error) {
	err = f.disk.do(false, func() error {
		n, err = f.File.Write(p)
		f.file.data = append(f.file.data, p[:n]...)
		return err
	})
	return n, err
}

// Sync makes durable what was written, but not the file's name.
func (f *openFile) Sync() error {
	return f.disk.do(true, func() error {
		f.file.synced = len(f.file.data)
		return nil
	})
}

// Rename implements durable.Disk, within one directory.
func (d *Disk) Rename(from, to string) error {
	return d.do(false, func() error {
		in, last, err := d.parent(from)
		if err != nil {
			return err
		}
		if filepath.Dir(from) != filepath.Dir(to) {
			return errors.New("rename into another directory: not simulated")
		}
		node, found := in.seen[last]
		if !found {
			return &os.PathError{Op: "rename", Path: from, Err: os.ErrNotExist}
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
		in.change(change{remove: last, add: filepath.Base(to), node: node})
		return nil
	})
}

// Remove implements durable.Disk.
func (d *Disk) Remove(name string) error {
	return d.do(false, func() error {
		in, last, err := d.parent(name)
		if err != nil {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
		in.change(change{remove: last})
		return nil
	})
}

// MakeDirectory implements durable.Disk.
func (d *Disk) MakeDirectory(name string) error {
	return d.do(false, func() error {
		in, last, err := d.parent(name)
		if err != nil {
			return err
		}
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
		in.change(change{add: last, node: newDirectory()})
		return nil
	})
}

// SyncDirectory implements durable.Disk.
func (d *Disk) SyncDirectory(name string) error {
	return d.do(true, func() error {
		at, err := d.directory(name)
		if err != nil {
			return err
		}
		for _, c := range at.pending {
			c.apply(at.durable)
		}
		at.pending = nil
		return nil
	})
}
