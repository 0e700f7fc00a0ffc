package cassandra

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup"
)

// The owner column is one frozen user type, so a row is one cell and cqlsh still shows its fields:
//
//	topic_id uuid, partition int, offset bigint, epoch int, fingerprint blob, claimed_at timestamp
//
// On the wire each field is its length as an int and its bytes (native protocol v4, section 6).
const ownerFields = 6

const ownerBytes = ownerFields*4 + 16 + 4 + 8 + 4 + len(dedup.Fingerprint{}) + 8

// cell is a value that is already in wire form.
type cell []byte

// MarshalCQL implements gocql.Marshaler.
func (c *cell) MarshalCQL(gocql.TypeInfo) ([]byte, error) { return *c, nil }

// blob binds an ID without copying it.
type blob dedup.ID

// MarshalCQL implements gocql.Marshaler.
func (b *blob) MarshalCQL(gocql.TypeInfo) ([]byte, error) {
	return unsafe.Slice(unsafe.StringData(string(*b)), len(*b)), nil
}

// appendOwner appends the wire form of the claim's owner column.
func appendOwner(to []byte, c *dedup.Claim, claimedAt time.Time) []byte {
	to = binary.BigEndian.AppendUint32(to, 16)
	to = append(to, c.Owner.TopicID[:]...)
	to = binary.BigEndian.AppendUint32(to, 4)
	to = binary.BigEndian.AppendUint32(to, uint32(c.Owner.Partition))
	to = binary.BigEndian.AppendUint32(to, 8)
	to = binary.BigEndian.AppendUint64(to, uint64(c.Owner.Offset))
	to = binary.BigEndian.AppendUint32(to, 4)
	to = binary.BigEndian.AppendUint32(to, uint32(c.Owner.LeaderEpoch))
	to = binary.BigEndian.AppendUint32(to, uint32(len(c.Fingerprint)))
	to = append(to, c.Fingerprint[:]...)
	to = binary.BigEndian.AppendUint32(to, 8)
	return binary.BigEndian.AppendUint64(to, uint64(claimedAt.UnixMilli()))
}

// ownerCell scans an owner column into an answer. It copies nothing but fixed-size values, so it is
// safe although the data belongs to the driver's frame.
type ownerCell struct {
	answer dedup.Answer
	found  bool
}

// UnmarshalCQL implements gocql.Unmarshaler.
func (o *ownerCell) UnmarshalCQL(_ gocql.TypeInfo, data []byte) error {
	o.found, o.answer = false, dedup.Answer{}
	if data == nil {
		return nil // a statement's row that does not exist, as ScyllaDB lists them
	}
	if len(data) != ownerBytes {
		return fmt.Errorf(
			"owner column has %d bytes, want %d: was the table created by kdedup setup?", len(data),
			ownerBytes)
	}
	field := func(n int) []byte {
		value := data[4 : 4+n]
		data = data[4+n:]
		return value
	}
	copy(o.answer.Owner.TopicID[:], field(16))
	o.answer.Owner.Partition = int32(binary.BigEndian.Uint32(field(4)))
	o.answer.Owner.Offset = int64(binary.BigEndian.Uint64(field(8)))
	o.answer.Owner.LeaderEpoch = int32(binary.BigEndian.Uint32(field(4)))
	copy(o.answer.Fingerprint[:], field(len(dedup.Fingerprint{})))
	o.answer.ClaimedAt = time.UnixMilli(int64(binary.BigEndian.Uint64(field(8))))
	o.answer.Outcome = dedup.Exists
	o.found = true
	return nil
}

// borrowed scans a blob without copying it: the slice is good until the next row is scanned.
// gocql's own scan into a []byte appends into the slice that it is given, which mixes up rows.
type borrowed []byte

// UnmarshalCQL implements gocql.Unmarshaler.
func (b *borrowed) UnmarshalCQL(_ gocql.TypeInfo, data []byte) error {
	*b = data
	return nil
}
