package embedded

import (
	"path"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS watches the write-ahead log. When Pebble cannot change over from one log file to the next,
// it panics with a mutex in the wrong state, and the Go runtime ends the process with a message that
// says nothing of the disk. logFS ends it before that, through health.Fatalf.
type logFS struct {
	vfs.FS
	health *health
	inUse  atomic.Bool // from the end of Open to the beginning of Close, which report errors themselves
}

// Unwrap implements vfs.FS.
func (l *logFS) Unwrap() vfs.FS { return l.FS }

// Create implements vfs.FS.
func (l *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := l.FS.Create(name, category)
	return l.watch(name, file, err)
}

// ReuseForWrite implements vfs.FS.
func (l *logFS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := l.FS.ReuseForWrite(oldName, newName, category)
	return l.watch(newName, file, err)
}

func (l *logFS) watch(name string, file vfs.File, err error) (vfs.File, error) {
	if path.Ext(name) != ".log" {
		return file, err
	}
	if err != nil {
		l.end(err)
		return nil, err
	}
	return &logFile{File: file, fs: l}, nil
}

// end does not return while the store is in use.
func (l *logFS) end(err error) {
	if l.inUse.Load() {
		l.health.Fatalf("change over to a new log file: %w", err)
		select {}
	}
}

// logFile notes an error before Pebble learns of it, so that no further write begins.
type logFile struct {
	vfs.File
	fs *logFS
}

func (f *logFile) note(err error) error {
	if err != nil {
		f.fs.health.fail(err)
	}
	return err
}

func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.note(err)
}

func (f *logFile) Sync() error     { return f.note(f.File.Sync()) }
func (f *logFile) SyncData() error { return f.note(f.File.SyncData()) }

// Close by a store in use is a change of log files; behind a failed write it goes wrong.
func (f *logFile) Close() error {
	if err := f.fs.health.err(); err != nil {
		f.fs.end(err)
	}
	err := f.File.Close()
	if err != nil {
		f.fs.end(err)
	}
	return err
}
