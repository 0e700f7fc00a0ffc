package report

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kdedup/kdedup/dedup"
)

// sorter orders more entries than fit into memory: it sorts what fits, writes that to a file, and
// merges the files in the end. What fits as a whole never touches the disk. An embedded database
// would do it too, but waits for ever where the disk is full; this one returns the error.
type sorter struct {
	parent string // of the directory
	dir    string // empty until the first file is needed
	limit  int    // bytes of arena
	arena  []byte
	starts []int // of the entries in arena
	runs   []string
	made   int
}

const (
	sortBytes = 64 << 20

	// mergeRuns files are merged at a time; each takes a buffer and a file descriptor.
	mergeRuns = 128
	runBuffer = 64 << 10
)

func newSorter(parent string, limit int) *sorter { return &sorter{parent: parent, limit: limit} }

// add copies the entry.
func (s *sorter) add(id dedup.ID, o occurrence) error {
	if len(s.arena)+len(id)+entryBytes > s.limit && len(s.starts) > 0 {
		if err := s.spill(); err != nil {
			return fmt.Errorf("write temporary files: %w", err)
		}
	}
	if s.arena == nil {
		s.arena = make([]byte, 0, min(s.limit, sortBytes))
	}
	s.starts = append(s.starts, len(s.arena))
	s.arena = appendEntry(s.arena, id, o)
	return nil
}

// each calls visit with every entry in order. An entry is good until visit returns.
func (s *sorter) each(visit func(entry) error) error {
	sources := []source{s.sorted()}
	for _, name := range s.runs {
		run, err := openRun(name)
		if err != nil {
			return errors.Join(err, closeAll(sources))
		}
		sources = append(sources, run)
	}
	return errors.Join(merge(sources, visit), closeAll(sources))
}

// sorted orders what is in memory.
func (s *sorter) sorted() *memoryRun {
	run := &memoryRun{entries: make([]entry, len(s.starts))}
	for i, start := range s.starts {
		end := len(s.arena)
		if i+1 < len(s.starts) {
			end = s.starts[i+1]
		}
		run.entries[i] = s.arena[start:end]
	}
	slices.SortFunc(run.entries, compareEntries)
	return run
}

// spill moves what is in memory to a file.
func (s *sorter) spill() error {
	if len(s.runs) == mergeRuns {
		if err := s.mergeFiles(); err != nil {
			return err
		}
	}
	if err := s.writeRun([]source{s.sorted()}); err != nil {
		return err
	}
	s.arena, s.starts = s.arena[:0], s.starts[:0]
	return nil
}

// mergeFiles makes one file of all.
func (s *sorter) mergeFiles() error {
	var sources []source
	for _, name := range s.runs {
		run, err := openRun(name)
		if err != nil {
			return errors.Join(err, closeAll(sources))
		}
		sources = append(sources, run)
	}
	old := s.runs
	s.runs = nil
	err := errors.Join(s.writeRun(sources), closeAll(sources))
	for _, name := range old {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func (s *sorter) writeRun(sources []source) error {
	if s.dir == "" {
		dir, err := os.MkdirTemp(s.parent, "kdedup-report-")
		if err != nil {
			return err
		}
		s.dir = dir
	}
	s.made++
	name := fmt.Sprintf("%s/%d", s.dir, s.made)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, name)
	to := bufio.NewWriterSize(file, runBuffer)
	var length [2]byte
	err = merge(sources, func(e entry) error {
		binary.BigEndian.PutUint16(length[:], uint16(len(e)))
		_, _ = to.Write(length[:]) // Flush has its error
		_, err := to.Write(e)
		return err
	})
	return errors.Join(err, to.Flush(), file.Close())
}

// close removes the files.
func (s *sorter) close() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
