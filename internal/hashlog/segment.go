package hashlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/kdedup/kdedup/internal/durable"
)

// segmentMagic begins every segment, so that no record is at place 0, and compactMagic, which is as
// long, those that are compact.
var (
	segmentMagic = []byte("kdlog\x00\x00\x01")
	compactMagic = []byte("kdlog\x00\x00\x02")
)

func isCompact(data []byte) bool { return bytes.HasPrefix(data, compactMagic) }

// segment is one file of records.
type segment struct {
	number uint32
	read   *readFile
	file   durable.File // of the active one, which is appended to
	size   atomic.Int64 // of what was appended
	ends   atomic.Int64 // when the last of its records ends
	synced atomic.Bool  // and not appended to any more

	compact bool // its records are, see Shape

	durable atomic.Int64 // bytes that a sync surely covered
	noted   int64        // what the last note says of them; needs the token of appending
}

func segmentName(number uint32) string { return fmt.Sprintf("segment-%010d", number) }

func (l *Log) path(name string) string { return filepath.Join(l.dir, name) }

// createSegment makes an empty segment, of which no file says yet that it counts. The file and its
// name are durable: the manifest that names it may be so at once.
func (l *Log) createSegment(number uint32) (*segment, error) {
	name := l.path(segmentName(number))
	file, err := l.o.Disk.Create(name)
	if err != nil {
		return nil, err
	}
	s := &segment{number: number, file: file, read: l.o.Files.of(name), compact: l.compact()}
	magic := segmentMagic
	if s.compact {
		magic = compactMagic
	}
	err = s.append(magic)
	if err == nil {
		err = s.sync()
	}
	if err == nil {
		err = l.o.Disk.SyncDirectory(l.dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), l.o.Disk.Remove(name))
	}
	s.noted = s.durable.Load() // the manifest will say so
	return s, nil
}

func (s *segment) append(data []byte) error {
	if _, err := s.file.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", segmentName(s.number), err)
	}
	s.size.Add(int64(len(data)))
	return nil
}

// note writes down how much is durable, if that is more than the last note says.
func (s *segment) note() error {
	durable := s.durable.Load()
	if durable == s.noted {
		return nil
	}
	s.noted = durable
	return s.append(appendNote(nil, durable))
}

// sync makes durable what was appended before the call.
func (s *segment) sync() error {
	size := s.size.Load()
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", segmentName(s.number), err)
	}
	s.durable.Store(size)
	return nil
}

func (s *segment) noteEnd(ends int64) {
	if ends > s.ends.Load() {
		s.ends.Store(ends)
	}
}

// compact tells whether new segments are.
func (l *Log) compact() bool { return l.o.Shape != nil }

// hasKey tells whether a record has a key. If it cannot be read, the two records stay apart. It
// needs the token of appending.
func (l *Log) hasKey(s *segment, offset int64, key []byte) bool {
	if s.compact {
		found, err := l.own.readCompact(s, offset, len(key))
		return err == nil && bytes.Equal(found.key, key)
	}
	data := make([]byte, headerBytes+len(key))
	if _, err := s.read.ReadAt(data, offset); err != nil {
		return false
	}
	return int(binary.LittleEndian.Uint32(data[4:])) == len(key) &&
		bytes.Equal(data[headerBytes:], key)
}

// openSegment opens a segment that is full, as the manifest describes it.
func (l *Log) openSegment(d segmentRecord) (*segment, error) {
	name := l.path(segmentName(d.Number))
	info, err := os.Stat(name)
	if err != nil {
		return nil, explainMissing(err)
	}
	if info.Size() != d.Bytes {
		return nil, fmt.Errorf("%w: %s has %d bytes, it had %d when it was closed", ErrDamaged,
			name, info.Size(), d.Bytes)
	}
	s := &segment{number: d.Number, read: l.o.Files.of(name), compact: d.Compact}
	s.size.Store(d.Bytes)
	s.ends.Store(d.Ends)
	s.synced.Store(true)
	return s, nil
}

// explainMissing is for errors from opening a segment that counts.
func explainMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: a file with records is missing, bring it back: %w", ErrDamaged, err)
	}
	return err
}

// scan reads the records of a segment's bytes, and returns how many of the bytes are good. A record
// is valid until each returns.
func scan(number uint32, data []byte, each func(r record, at place)) (good int, err error) {
	compact := isCompact(data)
	if !compact && !bytes.HasPrefix(data, segmentMagic) {
		return 0, fmt.Errorf("%w: %s does not begin as a segment does", ErrDamaged,
			segmentName(number))
	}
	var memory []byte
	for good = len(segmentMagic); good < len(data); {
		if _, ok := parseNote(data[good:]); ok {
			good += noteBytes
			continue
		}
		r, length, err := parseAt(data, good, compact, &memory)
		if errors.Is(err, errShared) {
			good += length
			continue
		}
		if err != nil {
			return good, fmt.Errorf("%s, at %d: %w", segmentName(number), good, err)
		}
		each(r, placeOf(number, int64(good)))
		good += length
	}
	return good, nil
}

// parseAt reads the record at a place of a segment's bytes.
func parseAt(data []byte, at int, compact bool, memory *[]byte) (record, int, error) {
	if compact {
		return parseCompact(data, at, memory)
	}
	return parseRecord(data[at:])
}
