package hashlog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Reader looks up keys, with memory that it uses again. It is not safe for concurrent use.
type Reader struct {
	log    *Log
	since  place // of the current look-up
	places []place
	page   page
	data   []byte
	memory []byte // of a compact record
	found  place  // of the record that the last Get found; 0: there is none
}

// NewReader returns a reader, which need not be closed.
func (l *Log) NewReader() *Reader { return &Reader{log: l} }

// Get returns the value of the newest record of a key, and when it ends, which may be in the past.
// The value is nil when there is no record, it was deleted, or it ended and was dropped. It is
// valid until the next Get.
func (r *Reader) Get(key []byte) (value []byte, ends int64, err error) {
	return r.GetSince(key, 0)
}

// Point is a place in a log, behind what was appended until then. The zero value is before all.
type Point place

// End is behind all that was appended. Nobody may append meanwhile.
func (l *Log) End() Point {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return Point(placeOf(l.active.number, l.active.size.Load()))
}

// GetSince is Get as if there were nothing before a point. A point near the end makes it quick.
func (r *Reader) GetSince(key []byte, point Point) (value []byte, ends int64, err error) {
	l, hash := r.log, r.log.key.Sum64(key)
	r.since = place(point)
	r.found = 0
	l.mu.RLock()
	defer l.mu.RUnlock()
	found, err := r.inTables(hash, key)
	for i := len(l.indexes) - 1; i >= 0 && found == nil && err == nil &&
		l.indexes[i].last >= r.since.segment(); i-- {
		found, err = r.inIndex(l.indexes[i], hash, key)
	}
	if found == nil || err != nil || len(found.value) == 0 {
		return nil, 0, err
	}
	return found.value, found.ends, nil
}

func (r *Reader) inTables(hash uint64, key []byte) (found *record, err error) {
	l := r.log
	r.places = l.table.find(r.places[:0], hash)
	found, err = r.newest(key)
	for i := len(l.full) - 1; i >= 0 && found == nil && err == nil &&
		l.full[i].segment.number >= r.since.segment(); i-- {
		r.places = l.full[i].table.find(r.places[:0], hash)
		found, err = r.newest(key)
	}
	return found, err
}

func (r *Reader) inIndex(x *index, hash uint64, key []byte) (*record, error) {
	if !x.filter.Has(hash) {
		return nil, nil
	}
	var err error
	if r.places, err = x.find(r.places[:0], &r.page, hash); err != nil {
		return nil, err
	}
	return r.newest(key)
}

// newest reads the records at places until one is of the key: a hash may belong to several.
func (r *Reader) newest(key []byte) (*record, error) {
	if len(r.places) > 1 {
		slices.SortFunc(r.places, func(a, b place) int { return cmp.Compare(b, a) })
	}
	for _, at := range r.places {
		if at < r.since {
			continue
		}
		s := r.log.segments[at.segment()]
		if s == nil {
			continue // all of it had ended
		}
		found, err := r.read(s, at.offset(), len(key))
		if err != nil {
			return nil, fmt.Errorf("%s, at %d: %w", segmentName(s.number), at.offset(), err)
		}
		if bytes.Equal(found.key, key) {
			r.found = at
			return &found, nil
		}
	}
	return nil, nil
}

// likelyValue is how many bytes of a value are read with its header.
const likelyValue = 64

func (r *Reader) read(s *segment, offset int64, key int) (record, error) {
	if s.compact {
		return r.readCompact(s, offset, key)
	}
	n, err := r.readAt(s, offset, headerBytes+key+likelyValue)
	if n < headerBytes {
		return record{}, err
	}
	length, err := recordLength(r.data)
	if err != nil {
		return record{}, err
	}
	if length > n {
		if _, err := r.readAt(s, offset, length); err != nil {
			return record{}, err
		}
	}
	found, _, err := parseRecord(r.data)
	return found, err
}

// readCompact reads what is before a record with it: its shared part is there.
func (r *Reader) readCompact(s *segment, offset int64, key int) (record, error) {
	from := max(int64(len(compactMagic)), offset-mostBack)
	before := int(offset - from)
	n, err := r.readAt(s, from, before+compactHead+key+likelyValue)
	if n <= before {
		return record{}, err
	}
	head, headErr := parseHead(r.data[before:])
	if headErr != nil {
		return record{}, headErr
	}
	if length := before + head.length(); length > n {
		if _, err := r.readAt(s, from, length); err != nil {
			return record{}, err
		}
	}
	found, _, err := parseCompact(r.data, before, &r.memory)
	return found, err
}

// readAt reads less at the end of the file.
func (r *Reader) readAt(s *segment, offset int64, length int) (int, error) {
	r.data = slices.Grow(r.data[:0], length)[:length]
	n, err := s.read.ReadAt(r.data, offset)
	r.data = r.data[:n]
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: a record is cut off", ErrDamaged)
	}
	return n, err
}
