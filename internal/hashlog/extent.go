package hashlog

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// Extent says how far a log went at some time, so that it can be told later whether it is still
// that log, and goes at least as far. A backup that copies one file after the other may bring back
// files that do not.
type Extent struct {
	Log     string `json:"log"` // of the key of its hashes, which every log has of its own
	Segment uint32 `json:"segment"`
	Bytes   int64  `json:"bytes"` // of that segment
	Sum     uint32 `json:"sum"`   // CRC-32C of the last of these bytes
}

// summed is how many of the last bytes an extent has the sum of.
const summed = 4096

// ErrShorter is wrapped by errors about a log that does not go as far as it did.
var ErrShorter = errors.New("the files are older than what was noted of them, or of another log")

// Extent is how far a log goes up to a point, which End returned.
func (l *Log) Extent(end Point) (Extent, error) {
	at := place(end)
	e := Extent{Log: l.name(), Segment: at.segment(), Bytes: at.offset()}
	var err error
	e.Sum, err = l.sum(e)
	return e, err
}

// Reaches returns ErrShorter unless the log goes as far as an extent of it says. A segment that was
// dropped since need not be there.
func (l *Log) Reaches(e Extent) error {
	if e.Log != l.name() {
		return fmt.Errorf("%w: it is log %s and was %s", ErrShorter, l.name(), e.Log)
	}
	l.mu.RLock()
	s, newest := l.segments[e.Segment], l.active.number
	l.mu.RUnlock()
	switch {
	case s == nil && e.Segment < newest:
		return nil
	case s == nil:
		return fmt.Errorf("%w: segment %d is missing", ErrShorter, e.Segment)
	case s.size.Load() < e.Bytes:
		return fmt.Errorf("%w: segment %d has %d bytes and had %d", ErrShorter, e.Segment,
			s.size.Load(), e.Bytes)
	}
	sum, err := l.sum(e)
	if err == nil && sum != e.Sum {
		err = fmt.Errorf("%w: segment %d differs before byte %d", ErrShorter, e.Segment, e.Bytes)
	}
	return err
}

func (l *Log) sum(e Extent) (uint32, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.segments[e.Segment]
	if s == nil { // dropped
		return 0, nil
	}
	data := make([]byte, min(summed, e.Bytes))
	if _, err := s.read.ReadAt(data, e.Bytes-int64(len(data))); err != nil {
		return 0, fmt.Errorf("read %s: %w", segmentName(e.Segment), err)
	}
	return crc32.Checksum(data, castagnoli), nil
}

// name is one of the log, and tells nothing of its key.
func (l *Log) name() string { return fmt.Sprintf("%016x", l.key.Sum64([]byte("name"))) }

// LatestEnd is a time at which all records have ended.
func (l *Log) LatestEnd() (latest int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		latest = max(latest, s.ends.Load())
	}
	return latest
}
