// Package powercut simulates a disk that loses power. It writes real files, so that programs read
// them as they are used to, and remembers what was synced. After the cut, Restore makes the files
// that are left: what was synced, and of all the rest any part, whatever the order in which it was
// written.
package powercut

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/kdedup/kdedup/internal/durable"
)

// ErrPower is the error of everything that is tried after the cut.
var ErrPower = errors.New("the power is off")

// Disk is a durable.Disk of all that is in one directory.
type Disk struct {
	path string

	mu         sync.Mutex
	root       *directory
	operations int
	cutAt      int // the number of the operation that is not done any more; 0: none
}

var _ durable.Disk = (*Disk)(nil)

// directory has entries that are *directory or *file.
type directory struct {
	seen    map[string]any // by the programs that run
	durable map[string]any
	pending []change // in order
}

// change is one step in a directory, which is there after a cut as a whole or not at all.
type change struct {
	remove string // "": nothing
	add    string // "": nothing
	node   any    // that is added
}

func (c change) apply(to map[string]any) {
	delete(to, c.remove)
	if c.add != "" {
		to[c.add] = c.node
	}
}

func (d *directory) change(c change) {
	c.apply(d.seen)
	d.pending = append(d.pending, c)
}

// file is only appended to.
type file struct {
	data   []byte
	synced int
}

// Open returns a disk of what is in a directory, all of which counts as synced.
func Open(path string) (*Disk, error) {
	root, err := load(path)
	if err != nil {
		return nil, err
	}
	return &Disk{path: path, root: root}, nil
}

func load(path string) (*directory, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	d := newDirectory()
	for _, entry := range entries {
		var node any
		name := filepath.Join(path, entry.Name())
		if entry.IsDir() {
			node, err = load(name)
		} else {
			var data []byte
			data, err = os.ReadFile(name)
			node = &file{data: data, synced: len(data)}
		}
		if err != nil {
			return nil, err
		}
		d.seen[entry.Name()], d.durable[entry.Name()] = node, node
	}
	return d, nil
}

func newDirectory() *directory {
	return &directory{seen: map[string]any{}, durable: map[string]any{}}
}

// CutAfter lets n more operations be done.
func (d *Disk) CutAfter(operations int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutAt = d.operations + operations + 1
}

// Off tells whether the power is off.
func (d *Disk) Off() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.offLocked()
}

func (d *Disk) offLocked() bool { return d.cutAt > 0 && d.operations >= d.cutAt }

// do counts an operation and does it. Of the one at which the power goes off, the disk has what it
// has of others that were not synced; a sync is not done.
func (d *Disk) do(sync bool, operation func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.offLocked() {
		return ErrPower
	}
	d.operations++
	cut := d.offLocked()
	if cut && sync {
		return ErrPower
	}
	if err := operation(); err != nil {
		return err
	}
	if cut {
		return ErrPower
	}
	return nil
}

// parent returns the directory that holds a name, and the last part of the name.
func (d *Disk) parent(name string) (in *directory, last string, err error) {
	directory, last := filepath.Split(filepath.Clean(name))
	in, err = d.directory(directory)
	return in, last, err
}

func (d *Disk) directory(name string) (*directory, error) {
	relative, err := filepath.Rel(d.path, name)
	if err != nil {
		return nil, err
	}
	at := d.root
	for _, part := range split(relative) {
		next, ok := at.seen[part].(*directory)
		if !ok {
			return nil, &os.PathError{Op: "simulate", Path: name, Err: os.ErrNotExist}
		}
		at = next
	}
	return at, nil
}
