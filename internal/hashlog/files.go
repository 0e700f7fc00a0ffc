package hashlog

import (
	"container/list"
	"os"
	"sync"
)

// Files bounds how many files are open to be read, in all logs that share it. Each open one of them
// costs the process a descriptor, and a log has two files for each 32 MiB. The ones that were read
// last stay open.
type Files struct {
	limit int

	mu   sync.Mutex
	open list.List // of *readFile, the one that was read last in front
}

// mostOpen is the limit of a log that shares its files with no other.
const mostOpen = 256

// NewFiles returns a limit, at least 1. While more are read at the same moment, more are open.
func NewFiles(limit int) *Files { return &Files{limit: max(1, limit)} }

// readFile is a file that is opened when it is read.
type readFile struct {
	files *Files
	name  string

	// These are guarded by files.mu.
	file    *os.File      // nil: not open
	place   *list.Element // among the open ones
	readers int
}

func (f *Files) of(name string) *readFile { return &readFile{files: f, name: name} }

// ReadAt implements io.ReaderAt.
func (r *readFile) ReadAt(p []byte, offset int64) (int, error) {
	file, err := r.acquire()
	if err != nil {
		return 0, err
	}
	defer r.release()
	return file.ReadAt(p, offset)
}

func (r *readFile) acquire() (*os.File, error) {
	r.files.mu.Lock()
	defer r.files.mu.Unlock()
	if r.file == nil {
		file, err := os.Open(r.name)
		if err != nil {
			return nil, err
		}
		r.file, r.place = file, r.files.open.PushFront(r)
		r.files.closeOldLocked(r)
	} else {
		r.files.open.MoveToFront(r.place)
	}
	r.readers++
	return r.file, nil
}

func (r *readFile) release() {
	r.files.mu.Lock()
	defer r.files.mu.Unlock()
	r.readers--
}

// closeOldLocked keeps the limit, and the file that is about to be read.
func (f *Files) closeOldLocked(opened *readFile) {
	for place := f.open.Back(); place != nil && f.open.Len() > f.limit; {
		r := place.Value.(*readFile)
		place = place.Prev()
		if r.readers == 0 && r != opened {
			_ = r.closeLocked() // it was only read
		}
	}
}

func (r *readFile) closeLocked() error {
	if r.file == nil {
		return nil
	}
	file := r.file
	r.files.open.Remove(r.place)
	r.file, r.place = nil, nil
	return file.Close()
}

// Close comes after all reads.
func (r *readFile) Close() error {
	r.files.mu.Lock()
	defer r.files.mu.Unlock()
	return r.closeLocked()
}
