package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// The directory has the files LOCK and CLOCK, and the log of the records in a directory of its own.
func (s *Store) open() error {
	if err := durable.MakeDirectories(s.o.disk, s.o.Path); err != nil {
		return err
	}
	if err := s.refuseOthers(); err != nil {
		return err
	}
	s.lock = flock.New(filepath.Join(s.o.Path, "LOCK"))
	mine, err := s.lock.TryLock()
	if err != nil {
		return err
	}
	if !mine {
		return errors.New("in use; one store per directory, and another kind of store to share " +
			"it between processes")
	}
	if err := s.load(); err != nil {
		return errors.Join(err, s.lock.Unlock())
	}
	return nil
}

func (s *Store) load() (err error) {
	clock, records := filepath.Join(s.o.Path, "CLOCK"), filepath.Join(s.o.Path, "records")
	// The file of the clock is written after the records were begun. Without them all keys would be
	// new.
	if _, err := os.Stat(clock); err == nil && !hashlog.Exists(records) {
		return fmt.Errorf(
			"%s: the records are missing; bring them back, or empty the store's directory", records)
	}
	options := steadyclock.Options{Wall: s.o.now, Elapsed: s.o.elapsed, Logger: s.o.Logger,
		Disk: s.o.disk}
	if s.clock, err = steadyclock.Open(clock, options); err != nil {
		return err
	}
	if err := durable.MakeDirectories(s.o.disk, records); err != nil {
		return err
	}
	s.records, err = hashlog.Open(records, hashlog.Options{Logger: s.o.Logger, Disk: s.o.disk,
		SegmentBytes: s.o.segmentBytes})
	return err
}

// refuseOthers knows the databases of earlier versions by their files. Beside them, all keys would
// be new.
func (s *Store) refuseOthers() error {
	for _, pattern := range []string{"MANIFEST-*", "OPTIONS-*", "marker.*", "*.sst"} {
		found, err := filepath.Glob(filepath.Join(s.o.Path, pattern))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return fmt.Errorf("%s is of a Pebble database, which an earlier version made; finish "+
				"its executions with that version, "+
				"wait for the ttl in which callers repeat their requests, then empty the "+
				"directory or name another", found[0])
		}
	}
	return nil
}
