package hashlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kdedup/kdedup/internal/hashlog/uuidtext"
)

// Shape says what the records of a log have in common with those before them: the first bytes of
// their keys, the last bytes of their values, and the end. A log with a shape has compact segments,
// in which that is stored once for its neighbours. A key that ends with a UUID in its usual
// spelling takes 16 bytes for that.
type Shape struct{ KeyPrefix, ValueSuffix int }

// A record of a compact segment is stored as
//
//	checksum     of all behind it, 4 bytes, little-endian
//	head         a varint: its kind, and above that the length of the key
//	value        a varint: the length of the value
//	back         a varint: how many bytes before the record its shared part begins; if it has one
//	ends         8 bytes, little-endian; if it has none
//	key          without the shared prefix and the UUID
//	UUID         16 bytes, if the key ends with one
//	value        without the shared suffix
//
// A shared part is stored as a record whose key is the prefix, and whose value is the suffix.
const (
	kindUUID   = 1 << iota // the key ends with a UUID
	kindHas                // it has a shared part
	kindShared             // it is one
	kindBits   = iota

	// mostBack has a record read together with its shared part.
	mostBack = 4 << 10
	// compactHead is the most that stands before a key.
	compactHead = 4 + 2*binary.MaxVarintLen32 + 8
	// mostRecent bounds the search for a shared part, and mostAhead the one for a second record
	// that is worth one.
	mostRecent = 8
	mostAhead  = 8
)

// compactRecord is the head of a record.
type compactRecord struct {
	kind       uint64
	key, value int   // lengths
	back       int   // 0: it has no shared part
	ends       int64 // if it has none
	head       int   // the length up to the key
}

func (c *compactRecord) length() int {
	length := c.head + c.key + c.value
	if c.kind&kindUUID != 0 {
		length += uuidtext.Bytes
	}
	return length
}

var errCutOff = fmt.Errorf("%w: a record is cut off", ErrDamaged)

// parseHead reads the head of the record with which data begins.
func parseHead(data []byte) (c compactRecord, err error) {
	head, n := binary.Uvarint(data[min(4, len(data)):])
	value, m := binary.Uvarint(data[min(4+max(0, n), len(data)):])
	if n <= 0 || m <= 0 {
		return c, errCutOff
	}
	c.kind, c.head = head&(1<<kindBits-1), 4+n+m
	if head>>kindBits > MaxLength || value > MaxLength {
		return c, fmt.Errorf("%w: a record of %d and %d bytes", ErrDamaged, head>>kindBits, value)
	}
	c.key, c.value = int(head>>kindBits), int(value)
	if c.kind&kindHas == 0 {
		if len(data) < c.head+8 {
			return c, errCutOff
		}
		c.ends = int64(binary.LittleEndian.Uint64(data[c.head:]))
		c.head += 8
		return c, nil
	}
	back, k := binary.Uvarint(data[c.head:])
	switch {
	case k <= 0:
		return c, errCutOff
	case back == 0 || back > mostBack:
		return c, fmt.Errorf("%w: a record's shared part is %d bytes before it", ErrDamaged, back)
	}
	c.back = int(back)
	c.head += k
	return c, nil
}

// parseWhole reads the head of the record with which data begins, all of which is there.
func parseWhole(data []byte) (c compactRecord, err error) {
	switch c, err = parseHead(data); {
	case err != nil:
		return c, err
	case c.length() > len(data):
		return c, errCutOff
	case !intact(data[:c.length()]):
		return c, fmt.Errorf("%w: a record's checksum is wrong", ErrDamaged)
	}
	return c, nil
}

// errShared is for what counts as no record of its own.
var errShared = errors.New("a shared part of records")

// parseCompact reads the record that begins at a place of data, and returns its length. The record
// is within data or within memory, which is used again. What is before the record must be there.
func parseCompact(data []byte, at int, memory *[]byte) (r record, length int, err error) {
	c, err := parseWhole(data[at:])
	if err != nil {
		return r, 0, err
	}
	whole := data[at : at+c.length()]
	if c.kind&kindShared != 0 {
		return r, c.length(), errShared
	}
	var (
		shared         compactRecord
		prefix, suffix []byte
	)
	r.ends = c.ends
	if c.back > 0 {
		if c.back > at {
			return r, 0, fmt.Errorf("%w: a record's shared part is missing", ErrDamaged)
		}
		part := data[at-c.back : at]
		if shared, err = parseWhole(part); err == nil && shared.kind != kindShared {
			err = fmt.Errorf("%w: a record's shared part is none", ErrDamaged)
		}
		if err != nil {
			return r, 0, err
		}
		prefix = part[shared.head : shared.head+shared.key]
		suffix = part[shared.head+shared.key : shared.length()]
		r.ends = shared.ends
	}
	m := append((*memory)[:0], prefix...)
	own := whole[c.head : c.head+c.key]
	m = append(m, own...)
	behind := whole[c.head+c.key:]
	if c.kind&kindUUID != 0 {
		m = uuidtext.Unpack(m, behind[:uuidtext.Bytes])
		behind = behind[uuidtext.Bytes:]
	}
	key := len(m)
	m = append(append(m, behind...), suffix...)
	r.key, r.value = m[:key:key], m[key:]
	*memory = m
	return r, c.length(), nil
}

func appendHead(to []byte, kind uint64, key, value int) []byte {
	to = append(to, 0, 0, 0, 0)
	to = binary.AppendUvarint(to, uint64(key)<<kindBits|kind)
	return binary.AppendUvarint(to, uint64(value))
}

// encoder writes the records of a batch as a compact segment has them.
type encoder struct {
	shape  Shape
	batch  *Batch
	recent [mostRecent]sharedPart
	next   int // of recent, to be replaced
	last   int // of recent, that was used
}

// sharedPart is what records have in common. Its bytes are the batch's.
type sharedPart struct {
	at             int // where it stands
	prefix, suffix []byte
	ends           int64
}

func (p *sharedPart) fits(o *sharedPart) bool {
	return p.ends == o.ends && bytes.Equal(p.suffix, o.suffix) && bytes.Equal(p.prefix, o.prefix)
}

// sharedOf is what a record may have in common with others.
func (e *encoder) sharedOf(i int) (part sharedPart, is bool) {
	key, value, ends := e.batch.item(i)
	if len(key) < e.shape.KeyPrefix || len(value) < max(1, e.shape.ValueSuffix) {
		return part, false
	}
	return sharedPart{prefix: key[:e.shape.KeyPrefix],
		suffix: value[len(value)-e.shape.ValueSuffix:], ends: ends}, true
}

// share returns where the shared part of a record stands, which is written if others may use it; a
// record that has none, or would be alone with it, stands by itself.
func (e *encoder) share(to []byte, i int) (_ []byte, back int, part sharedPart) {
	part, is := e.sharedOf(i)
	if !is {
		return to, 0, sharedPart{}
	}
	for range e.recent {
		old := &e.recent[e.last]
		if old.prefix != nil && len(to)-old.at <= mostBack && old.fits(&part) {
			return to, len(to) - old.at, part
		}
		e.last = (e.last + 1) % mostRecent
	}
	for j := i + 1; j < e.batch.Len() && j <= i+mostAhead; j++ {
		if other, is := e.sharedOf(j); is && other.fits(&part) {
			part.at = len(to)
			e.recent[e.next], e.last = part, e.next
			e.next = (e.next + 1) % mostRecent
			to = appendHead(to, kindShared, len(part.prefix), len(part.suffix))
			to = binary.LittleEndian.AppendUint64(to, uint64(part.ends))
			to = append(append(to, part.prefix...), part.suffix...)
			seal(to[part.at:])
			return to, len(to) - part.at, part
		}
	}
	return to, 0, sharedPart{}
}

// append writes a record, and returns where it begins.
func (e *encoder) append(to []byte, i int) (_ []byte, at int) {
	key, value, ends := e.batch.item(i)
	to, back, part := e.share(to, i)
	key, value = key[len(part.prefix):], value[:len(value)-len(part.suffix)]
	kind := uint64(0)
	var room [uuidtext.Bytes]byte
	var packed []byte
	if len(key) >= uuidtext.TextBytes {
		rest := len(key) - uuidtext.TextBytes
		if uuid, is := uuidtext.Pack(room[:0], key[rest:]); is {
			kind, packed, key = kind|kindUUID, uuid, key[:rest]
		}
	}
	if back > 0 {
		kind |= kindHas
	}
	at = len(to)
	to = appendHead(to, kind, len(key), len(value))
	if back > 0 {
		to = binary.AppendUvarint(to, uint64(back))
	} else {
		to = binary.LittleEndian.AppendUint64(to, uint64(ends))
	}
	to = append(append(append(to, key...), packed...), value...)
	seal(to[at:])
	return to, at
}
