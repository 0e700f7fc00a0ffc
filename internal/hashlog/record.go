package hashlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A record is stored as the checksum of what follows, the lengths of key and value, when it ends,
// key and value; all numbers little-endian. A record without a value says that its key has none.
const (
	headerBytes = 4 + 4 + 4 + 8

	// MaxLength of a key or value keeps a place in a segment within 32 bits.
	MaxLength = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is wrapped by errors about what the files hold.
var ErrDamaged = errors.New("damaged")

// seal puts before the rest of data its checksum, for which the first 4 bytes are left free.
func seal(data []byte) { binary.LittleEndian.PutUint32(data, sumBehind(data)) }

func intact(data []byte) bool { return binary.LittleEndian.Uint32(data) == sumBehind(data) }

func sumBehind(data []byte) uint32 { return crc32.Checksum(data[4:], castagnoli) }

func appendRecord(to, key, value []byte, ends int64) []byte {
	start := len(to)
	to = append(to, 0, 0, 0, 0)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(key)))
	to = binary.LittleEndian.AppendUint32(to, uint32(len(value)))
	to = binary.LittleEndian.AppendUint64(to, uint64(ends))
	to = append(to, key...)
	to = append(to, value...)
	seal(to[start:])
	return to
}

type record struct {
	key, value []byte // within what was parsed
	ends       int64
}

// recordLength returns the length of the record that a header announces.
func recordLength(header []byte) (int, error) {
	key, value := binary.LittleEndian.Uint32(header[4:]), binary.LittleEndian.Uint32(header[8:])
	if key > MaxLength || value > MaxLength {
		return 0, fmt.Errorf("%w: a record of %d and %d bytes", ErrDamaged, key, value)
	}
	return headerBytes + int(key) + int(value), nil
}

// parseRecord reads the record with which data begins, and returns its length.
func parseRecord(data []byte) (r record, length int, err error) {
	if len(data) < headerBytes {
		return r, 0, fmt.Errorf("%w: a record is cut off", ErrDamaged)
	}
	length, err = recordLength(data)
	switch {
	case err != nil:
		return r, 0, err
	case length > len(data):
		return r, 0, fmt.Errorf("%w: a record is cut off", ErrDamaged)
	case !intact(data[:length]):
		return r, 0, fmt.Errorf("%w: a record's checksum is wrong", ErrDamaged)
	}
	value := headerBytes + binary.LittleEndian.Uint32(data[4:])
	return record{
		key: data[headerBytes:value], value: data[value:length],
		ends: int64(binary.LittleEndian.Uint64(data[12:])),
	}, length, nil
}
