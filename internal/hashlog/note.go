package hashlog

import (
	"bytes"
	"encoding/binary"
)

// A note stands in a segment between records and says how many of the segment's bytes were durable
// when it was written. It tells damage from what a crash left unfinished: a crash cuts off only
// what no sync had covered, so before the place that a later note names nothing may be wrong. It is
// stored as the checksum of what follows, a length that no key has, and the number.
const noteBytes = 4 + 4 + 8

var noteMark = []byte{0xff, 0xff, 0xff, 0xff}

func appendNote(to []byte, durable int64) []byte {
	start := len(to)
	to = append(to, 0, 0, 0, 0)
	to = append(to, noteMark...)
	to = binary.LittleEndian.AppendUint64(to, uint64(durable))
	seal(to[start:])
	return to
}

// parseNote reads the note with which data begins.
func parseNote(data []byte) (durable int64, ok bool) {
	if len(data) < noteBytes || !bytes.Equal(data[4:8], noteMark) || !intact(data[:noteBytes]) {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(data[8:])), true
}

// durableBefore is the largest number of the notes anywhere in data, whose records cannot be told
// from each other any more.
func durableBefore(data []byte) (durable int64) {
	for len(data) >= noteBytes {
		at := bytes.Index(data[4:], noteMark)
		if at < 0 {
			break
		}
		if noted, ok := parseNote(data[at:]); ok {
			durable = max(durable, noted)
		}
		data = data[at+1:]
	}
	return durable
}
