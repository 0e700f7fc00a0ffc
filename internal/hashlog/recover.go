package hashlog

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog/siphash"
)

// recover opens what the manifest names, deletes what it does not name, and makes again the indexes
// that are missing.
func (l *Log) recover() error {
	m, found, err := l.readManifest()
	if err != nil {
		return err
	}
	if !found {
		return l.initialize()
	}
	l.adopt(&m)
	if err := l.openSegments(m.Segments); err != nil {
		return err
	}
	l.openIndexes(m.Indexes)
	if err := l.deleteLeftovers(); err != nil {
		return err
	}
	if err := l.indexMissing(); err != nil {
		return err
	}
	return l.saveManifest()
}

// adopt takes the key of the hashes from the manifest. One of the first version has none: its
// indexes are of a hash that has no key, and are made again.
func (l *Log) adopt(m *manifest) {
	for _, d := range m.Indexes {
		l.lastIndex.Store(max(l.lastIndex.Load(), d.Number))
	}
	if m.Version > firstVersion {
		l.key = siphash.Key(m.HashKey)
		return
	}
	l.o.Logger.Info("the indexes of an earlier version are made again",
		"directory", l.dir, "segments", len(m.Segments))
	m.Indexes = nil
	l.newKey()
}

// newKey makes hashes that nobody can foresee: else a client could choose keys that collide.
func (l *Log) newKey() { _, _ = rand.Read(l.key[:]) } // never fails

// initialize makes the first segment, unless there are records whose manifest is lost.
func (l *Log) initialize() error {
	names, err := filepath.Glob(l.path("segment-*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.Size() > int64(len(segmentMagic)) {
			return fmt.Errorf("%w: %s is missing, and %s has records: bring it back", ErrDamaged,
				l.path(manifestName), name)
		}
	}
	if err := l.deleteLeftovers(); err != nil {
		return err
	}
	l.newKey()
	if l.active, err = l.createSegment(1); err != nil {
		return err
	}
	l.segments[1] = l.active
	return l.saveManifest()
}

func (l *Log) openSegments(records []segmentRecord) error {
	last := len(records) - 1
	for _, d := range records[:last] {
		s, err := l.openSegment(d)
		if err != nil {
			return err
		}
		l.segments[d.Number] = s
	}
	return l.recoverTail(records[last].Number, records[last].Bytes)
}

// recoverTail opens the segment that was appended to, without what a crash cut off. The good part
// is written again: a write that once failed may still be seen in the file and not be on the disk,
// and then a sync would not tell. At least durableBytes of it were durable.
func (l *Log) recoverTail(number uint32, durableBytes int64) error {
	name := l.path(segmentName(number))
	data, err := os.ReadFile(name)
	if err != nil {
		return explainMissing(err)
	}
	s := &segment{number: number, read: l.o.Files.of(name), compact: isCompact(data)}
	good, err := scan(number, data, func(r record, at place) {
		l.addScanned(l.table, data, r, at)
		s.noteEnd(r.ends)
	})
	if durableBytes = max(durableBytes, durableBefore(data[good:])); int64(good) < durableBytes {
		return lostSynced(name, good, durableBytes, err)
	}
	if good == 0 { // earlier versions named a segment before they synced its first bytes
		data, good = segmentMagic, len(segmentMagic)
	}
	if err != nil {
		l.o.Logger.Info("cut off what a crash left unfinished", "bytes", len(data)-good, "at", err)
	}
	if err := durable.Replace(l.o.Disk, name, data[:good]); err != nil {
		return err
	}
	file, err := l.o.Disk.Append(name)
	if err != nil {
		return err
	}
	s.file = file
	s.size.Store(int64(good))
	s.durable.Store(int64(good))
	l.segments[number], l.active = s, s
	return nil
}

// addScanned adds a record of a segment's bytes, all before which are good.
func (l *Log) addScanned(t *table, data []byte, r record, at place) {
	t.add(entry{l.key.Sum64(r.key), at}, func(other place) bool {
		var memory []byte
		old, _, err := parseAt(data, int(other.offset()), isCompact(data), &memory)
		return err == nil && bytes.Equal(old.key, r.key)
	})
}

// lostSynced says that a segment is not what it was. Cutting it off would lose records that callers
// rely on.
func lostSynced(name string, good int, durable int64, err error) error {
	if err == nil {
		err = errors.New("the file ends there")
	}
	return fmt.Errorf("%w: of the %d bytes of %s that were synced only the first %d are good, "+
		"bring the file back: %w",
		ErrDamaged, durable, name, good, err)
}

// openIndexes leaves out what cannot be used.
func (l *Log) openIndexes(records []indexRecord) {
	for _, d := range records {
		x, err := l.openIndex(d)
		if err != nil {
			l.o.Logger.Warn("an index is made again",
				"segments", fmt.Sprintf("%d to %d", d.First, d.Last), "error", err)
			continue
		}
		l.indexes = append(l.indexes, x)
	}
}

// deleteLeftovers deletes files of a log that are not in use.
func (l *Log) deleteLeftovers() error {
	used := map[string]bool{}
	for number := range l.segments {
		used[segmentName(number)] = true
	}
	for _, x := range l.indexes {
		used[indexName(x.number)] = true
	}
	files, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		name := file.Name()
		ours := strings.HasPrefix(name, "segment-") || strings.HasPrefix(name, "index-") ||
			name == manifestName+durable.Suffix
		if !ours || used[name] {
			continue
		}
		if err := l.o.Disk.Remove(l.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// indexMissing makes the indexes of full segments that are in none.
func (l *Log) indexMissing() error {
	for _, number := range slices.Sorted(maps.Keys(l.segments)) {
		covered := slices.ContainsFunc(l.indexes, func(x *index) bool {
			return x.first <= number && number <= x.last
		})
		if covered || number == l.active.number {
			continue
		}
		x, err := l.reindex(l.segments[number])
		if err != nil {
			return err
		}
		behind, _ := slices.BinarySearchFunc(l.indexes, number, func(x *index, number uint32) int {
			return cmp.Compare(x.first, number)
		})
		l.indexes = slices.Insert(l.indexes, behind, x)
		if err := l.saveManifest(); err != nil { // so that another start goes on from here
			return err
		}
	}
	return nil
}

func (l *Log) reindex(s *segment) (*index, error) {
	data, err := os.ReadFile(l.path(segmentName(s.number)))
	if err != nil {
		return nil, err
	}
	t := newTable(0)
	if _, err := scan(s.number, data, func(r record, at place) {
		l.addScanned(t, data, r, at)
	}); err != nil {
		return nil, err
	}
	return l.writeIndex(s.number, t)
}
