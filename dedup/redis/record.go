package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A claim is stored as its version, topic ID, partition, offset, leader epoch, fingerprint, and the
// time at which it was made, in milliseconds; all numbers big-endian. When it ends the server
// knows.
const (
	recordVersion = 1
	recordBytes   = 1 + 16 + 4 + 8 + 4 + len(dedup.Fingerprint{}) + 8
)

func appendRecord(to []byte, c *dedup.Claim, claimedAt time.Time) []byte {
	to = append(to, recordVersion)
	to = append(to, c.Owner.TopicID[:]...)
	to = binary.BigEndian.AppendUint32(to, uint32(c.Owner.Partition))
	to = binary.BigEndian.AppendUint64(to, uint64(c.Owner.Offset))
	to = binary.BigEndian.AppendUint32(to, uint32(c.Owner.LeaderEpoch))
	to = append(to, c.Fingerprint[:]...)
	return binary.BigEndian.AppendUint64(to, uint64(claimedAt.UnixMilli()))
}

var errRecord = errors.New("a claim is not in a format that this version knows")

// parseRecord returns the answer to a claimant that finds the claim.
func parseRecord(data []byte) (a dedup.Answer, err error) {
	if len(data) != recordBytes || data[0] != recordVersion {
		return a, fmt.Errorf("%w: %d bytes", errRecord, len(data))
	}
	copy(a.Owner.TopicID[:], data[1:])
	a.Owner.Partition = int32(binary.BigEndian.Uint32(data[17:]))
	a.Owner.Offset = int64(binary.BigEndian.Uint64(data[21:]))
	a.Owner.LeaderEpoch = int32(binary.BigEndian.Uint32(data[29:]))
	copy(a.Fingerprint[:], data[33:])
	a.ClaimedAt = time.UnixMilli(int64(binary.BigEndian.Uint64(data[49:])))
	a.Outcome = dedup.Exists
	return a, nil
}
