package idempotency

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A record in bytes: format, owner, revision, state, token, lease in milliseconds, request,
// response; numbers are big-endian.
const (
	recordFormat = 1
	recordHeader = 1 + VersionBytes + 1 + 8 + 8 + len(Hash{})
)

// VersionBytes is the length of [Version.AppendBinary], which begins at index 1 of an encoded
// record.
const VersionBytes = len(Owner{}) + 8

// ErrRecord says that stored bytes are not a record of this version of the package.
var ErrRecord = errors.New("idempotency record in an unknown format")

// AppendBinary appends the version to b, in VersionBytes bytes. For stores that compare bytes.
func (v Version) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, v.Owner[:]...)
	return binary.BigEndian.AppendUint64(b, uint64(v.Revision)), nil
}

// AppendBinary appends the record to b. For stores that keep bytes.
func (r Record) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, recordFormat)
	b, _ = r.Version.AppendBinary(b)
	b = append(b, byte(r.State))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Token))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Lease.Milliseconds()))
	b = append(b, r.Request[:]...)
	return append(b, r.Response...), nil
}

// ParseRecord reads what [Record.AppendBinary] wrote. The record shares no memory with data. Errors
// wrap ErrRecord.
func ParseRecord(data []byte) (r Record, err error) {
	if len(data) < recordHeader || data[0] != recordFormat {
		return r, fmt.Errorf("%w: %d bytes", ErrRecord, len(data))
	}
	data = data[1:]
	data = data[copy(r.Owner[:], data):]
	r.Revision = int64(binary.BigEndian.Uint64(data))
	r.State = State(data[8])
	r.Token = int64(binary.BigEndian.Uint64(data[9:]))
	lease := int64(binary.BigEndian.Uint64(data[17:]))
	r.Lease = time.Duration(lease) * time.Millisecond
	data = data[25:]
	data = data[copy(r.Request[:], data):]
	if r.State < Started || r.State > Released || r.Lease.Milliseconds() != lease {
		return Record{}, fmt.Errorf("%w: state %d, a lease of %d ms", ErrRecord, r.State, lease)
	}
	r.Response = append(r.Response, data...)
	return r, nil
}
