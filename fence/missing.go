package fence

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"sort"
)

// Missing are offsets below a fence whose records were not delivered when it passed them: compacted
// away, deleted, or of an aborted transaction. A batch that was never committed may have claimed
// IDs for them before they went; a copy of such a record is the only one that is left to forward.
// The ranges rise, and do not touch.
type Missing []Range

// Range is the offsets from From up to, not including, To.
type Range struct{ From, To int64 }

// MostMissing bounds the ranges of a fence, and so its record. When there are more, the lowest are
// forgotten.
const MostMissing = 4096

func (m Missing) has(offset int64) bool {
	i := sort.Search(len(m), func(i int) bool { return m[i].To > offset })
	return i < len(m) && m[i].From <= offset
}

// overlaps reports whether an offset from one on, below another one, is missing.
func (m Missing) overlaps(from, to int64) bool {
	i := sort.Search(len(m), func(i int) bool { return m[i].To > from })
	return i < len(m) && m[i].From < to
}

// Add returns the ranges with one that is not below them, in the memory of m if it fits.
func (m Missing) Add(from, to int64) Missing {
	switch last := len(m) - 1; {
	case from >= to:
	case last >= 0 && m[last].To >= from:
		m[last].To = max(m[last].To, to)
	default:
		m = append(m, Range{from, to})
	}
	return m[max(0, len(m)-MostMissing):]
}

// below returns the ranges below an offset.
func (m Missing) below(end int64) (left Missing) {
	for _, r := range m {
		left = left.Add(r.From, min(r.To, end))
	}
	return left
}

// without returns the ranges without an offset.
func (m Missing) without(offset int64) Missing {
	i := sort.Search(len(m), func(i int) bool { return m[i].To > offset })
	if i == len(m) || m[i].From > offset {
		return m
	}
	var left []Range
	for _, r := range []Range{{m[i].From, offset}, {offset + 1, m[i].To}} {
		if r.From < r.To {
			left = append(left, r)
		}
	}
	return slices.Concat(m[:i], left, m[i+1:])
}

// encode writes the gaps before, and the lengths of the ranges, as varints.
func (m Missing) encode() string {
	var raw []byte
	at := int64(0)
	for _, r := range m {
		raw = binary.AppendUvarint(raw, uint64(r.From-at))
		raw = binary.AppendUvarint(raw, uint64(r.To-r.From))
		at = r.To
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

var errMissing = errors.New("missing is not a list of ranges that rise")

func decodeMissing(text string) (m Missing, err error) {
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, errMissing
	}
	at := int64(0)
	for len(raw) > 0 {
		gap, n := binary.Uvarint(raw)
		length, k := binary.Uvarint(raw[max(n, 0):])
		from := at + int64(gap)
		to := from + int64(length)
		if n <= 0 || k <= 0 || from < at || to <= from || len(m) > 0 && from == at ||
			len(m) == MostMissing {
			return nil, errMissing
		}
		raw, at = raw[n+k:], to
		m = append(m, Range{from, to})
	}
	return m, nil
}
