package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A claim is stored as its version, topic ID, partition, offset, leader epoch, fingerprint, and the
// time at which it was made, in milliseconds; all numbers big-endian. When it ends is for the log
// to keep.
const (
	recordVersion = 1
	recordBytes   = 1 + 16 + 4 + 8 + 4 + len(dedup.Fingerprint{}) + 8
)

// RowBytes is what one claim takes on the disk with an ID of this length: with the lengths, end and
// checksum of the log's record, its entry in an index, and its bits in the filter of that.
func RowBytes(idBytes int) int { return idBytes + recordBytes + 20 + 16 + 2 }

// claimRecord is a claim as it is stored.
type claimRecord struct {
	owner       dedup.Coordinates
	fingerprint dedup.Fingerprint
	claimedAt   int64
}

func (r *claimRecord) answer() dedup.Answer {
	return dedup.Answer{
		Outcome: dedup.Exists, Owner: r.owner, Fingerprint: r.fingerprint,
		ClaimedAt: time.UnixMilli(r.claimedAt),
	}
}

func (r *claimRecord) append(to []byte) []byte {
	to = append(to, recordVersion)
	to = append(to, r.owner.TopicID[:]...)
	to = binary.BigEndian.AppendUint32(to, uint32(r.owner.Partition))
	to = binary.BigEndian.AppendUint64(to, uint64(r.owner.Offset))
	to = binary.BigEndian.AppendUint32(to, uint32(r.owner.LeaderEpoch))
	to = append(to, r.fingerprint[:]...)
	return binary.BigEndian.AppendUint64(to, uint64(r.claimedAt))
}

var errRecord = errors.New("a claim is not in a format that this version knows")

func parseRecord(data []byte) (r claimRecord, err error) {
	if len(data) != recordBytes || data[0] != recordVersion {
		return r, fmt.Errorf("%w: %d bytes", errRecord, len(data))
	}
	copy(r.owner.TopicID[:], data[1:])
	r.owner.Partition = int32(binary.BigEndian.Uint32(data[17:]))
	r.owner.Offset = int64(binary.BigEndian.Uint64(data[21:]))
	r.owner.LeaderEpoch = int32(binary.BigEndian.Uint32(data[29:]))
	copy(r.fingerprint[:], data[33:])
	r.claimedAt = int64(binary.BigEndian.Uint64(data[49:]))
	return r, nil
}
