package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

// The keys of the database begin with what they are.
const (
	recordPrefix = 'r' // length of the namespace in 2 bytes, namespace, ID -> end in milliseconds, record
	endPrefix    = 'e' // end of a record in milliseconds, its key -> nothing
)

func recordKey(key idempotency.Key) []byte {
	k := make([]byte, 0, 3+len(key.Namespace)+len(key.ID))
	k = append(k, recordPrefix)
	k = binary.BigEndian.AppendUint16(k, uint16(len(key.Namespace)))
	k = append(k, key.Namespace...)
	return append(k, key.ID...)
}

// endKey orders by time.
func endKey(expires time.Time, recordKey []byte) []byte {
	k := binary.BigEndian.AppendUint64([]byte{endPrefix}, uint64(expires.UnixMilli()))
	return append(k, recordKey...)
}

// endedKey is the record's key in an endKey.
func endedKey(endKey []byte) []byte { return endKey[1+8:] }

// appendValue rounds the end up to a millisecond.
func appendValue(to []byte, record idempotency.Record, expires time.Time) ([]byte, error) {
	to = binary.BigEndian.AppendUint64(to, uint64(expires.Add(time.Millisecond-1).UnixMilli()))
	return record.AppendBinary(to)
}

func parseValue(value []byte) (record idempotency.Record, expires time.Time, err error) {
	if len(value) < 8 {
		return record, expires, fmt.Errorf("%w: %d bytes", idempotency.ErrRecord, len(value))
	}
	record, err = idempotency.ParseRecord(value[8:])
	return record, time.UnixMilli(int64(binary.BigEndian.Uint64(value))), err
}
