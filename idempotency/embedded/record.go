package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

// recordKey is the length of the namespace in 2 bytes, the namespace, and the ID.
func recordKey(key idempotency.Key) []byte {
	k := make([]byte, 0, 2+len(key.Namespace)+len(key.ID))
	k = binary.BigEndian.AppendUint16(k, uint16(len(key.Namespace)))
	k = append(k, key.Namespace...)
	return append(k, key.ID...)
}

// A value is the end in milliseconds, and the record.

// appendValue rounds the end up to a millisecond.
func appendValue(to []byte, record idempotency.Record, expires time.Time) ([]byte, error) {
	to = binary.BigEndian.AppendUint64(to, uint64(endOf(expires)))
	return record.AppendBinary(to)
}

func endOf(expires time.Time) int64 { return expires.Add(time.Millisecond - 1).UnixMilli() }

func parseValue(value []byte) (record idempotency.Record, expires time.Time, err error) {
	if len(value) < 8 {
		return record, expires, fmt.Errorf("%w: %d bytes", idempotency.ErrRecord, len(value))
	}
	record, err = idempotency.ParseRecord(value[8:])
	return record, time.UnixMilli(int64(binary.BigEndian.Uint64(value))), err
}
