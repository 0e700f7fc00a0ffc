package report

import (
	"bytes"
	"encoding/binary"

	"github.com/kdedup/kdedup/dedup"
)

// entry is a record with an ID, as it is sorted. Its bytes order entries by ID, then by time, then
// by place:
//
//	length of the ID (2), ID, log time in milliseconds (8), partition (4), offset (8),
//	fingerprint (16), number of the header's value (2)
type entry []byte

const (
	placeBytes = 8 + 4 + 8
	restBytes  = len(dedup.Fingerprint{}) + 2
	entryBytes = 2 + placeBytes + restBytes // without the ID
)

// occurrence is a record that carries an ID.
type occurrence struct {
	at          int64 // log time, milliseconds
	partition   int32
	offset      int64
	fingerprint dedup.Fingerprint
	header      uint16
}

// signBit makes signed numbers sort as unsigned ones: there are timestamps below zero.
const signBit = 1 << 63

func appendEntry(to []byte, id dedup.ID, o occurrence) []byte {
	to = binary.BigEndian.AppendUint16(to, uint16(len(id))) // at most MaxIDBytes
	to = append(to, id...)
	to = binary.BigEndian.AppendUint64(to, uint64(o.at)^signBit)
	to = binary.BigEndian.AppendUint32(to, uint32(o.partition))
	to = binary.BigEndian.AppendUint64(to, uint64(o.offset))
	to = append(to, o.fingerprint[:]...)
	return binary.BigEndian.AppendUint16(to, o.header)
}

// id shares the entry's bytes.
func (e entry) id() []byte { return e[2 : len(e)-placeBytes-restBytes] }

func (e entry) occurrence() occurrence {
	at := e[len(e)-placeBytes-restBytes:]
	return occurrence{
		at:          int64(binary.BigEndian.Uint64(at) ^ signBit),
		partition:   int32(binary.BigEndian.Uint32(at[8:])),
		offset:      int64(binary.BigEndian.Uint64(at[12:])),
		fingerprint: dedup.Fingerprint(at[placeBytes:]),
		header:      binary.BigEndian.Uint16(at[placeBytes+len(dedup.Fingerprint{}):]),
	}
}

func compareEntries(a, b entry) int { return bytes.Compare(a, b) }
