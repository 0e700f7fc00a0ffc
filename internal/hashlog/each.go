package hashlog

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
)

// Each shows the records that count and end after a time, in no particular order. A record that
// counts during the whole call is shown once; one that is appended, replaced or dropped meanwhile
// may be shown or not. It holds one segment in memory. Key and value are valid until show returns,
// whose first error ends the call.
func (l *Log) Each(
	ctx context.Context, after int64, show func(key, value []byte, ends int64) error,
) error {
	reader := l.NewReader()
	for _, part := range l.parts(after) {
		if err := reader.each(ctx, part, after, show); err != nil {
			return fmt.Errorf("read all records: %w", err)
		}
	}
	return nil
}

// part is what a segment has at some time.
type part struct {
	segment *segment
	bytes   int64
}

// parts leaves out what has ended altogether.
func (l *Log) parts(after int64) (parts []part) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		if s.ends.Load() > after {
			parts = append(parts, part{s, s.size.Load()})
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Compare(a.segment.number, b.segment.number)
	})
	return parts
}

func (r *Reader) each(
	ctx context.Context, p part, after int64, show func(key, value []byte, ends int64) error,
) error {
	data := make([]byte, p.bytes)
	if _, err := p.segment.read.ReadAt(data, 0); err != nil && err != io.EOF {
		if r.gone(p.segment) {
			return nil // all of it has ended
		}
		return err
	}
	var stop error
	n := 0
	_, err := scan(p.segment.number, data, func(record record, at place) {
		if n++; n%64 == 0 && stop == nil && ctx.Err() != nil { // a look-up reads the disk
			stop = context.Cause(ctx)
		}
		if stop != nil || record.ends <= after || len(record.value) == 0 {
			return
		}
		newest, err := r.isNewest(record.key, at)
		if err == nil && newest {
			err = show(record.key, record.value, record.ends)
		}
		stop = err
	})
	return cmp.Or(stop, err)
}

func (r *Reader) gone(s *segment) bool {
	r.log.mu.RLock()
	defer r.log.mu.RUnlock()
	return r.log.segments[s.number] == nil
}

// isNewest reports whether the record at a place is the one that counts for its key.
func (r *Reader) isNewest(key []byte, at place) (bool, error) {
	if _, _, err := r.Get(key); err != nil {
		return false, err
	}
	return r.found == at, nil
}
