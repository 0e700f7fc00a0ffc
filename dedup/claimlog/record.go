package claimlog

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A claim is kept in an index as its version, topic ID, partition, offset, leader epoch,
// fingerprint, the time at which it was made, in milliseconds, and the place of its block; all
// numbers big-endian.
const (
	recordVersion = 1
	recordBytes   = 1 + 16 + 4 + 8 + 4 + len(dedup.Fingerprint{}) + 8 + 8
)

// held is a claim that owns its ID.
type held struct {
	owner       dedup.Coordinates
	fingerprint dedup.Fingerprint
	claimedAt   int64
	place       int64 // of its block in the shard
}

func (h *held) answer(outcome dedup.Outcome) dedup.Answer {
	return dedup.Answer{Outcome: outcome, Owner: h.owner, Fingerprint: h.fingerprint,
		ClaimedAt: time.UnixMilli(h.claimedAt)}
}

func (h *held) append(to []byte) []byte {
	to = append(to, recordVersion)
	to = append(to, h.owner.TopicID[:]...)
	to = binary.BigEndian.AppendUint32(to, uint32(h.owner.Partition))
	to = binary.BigEndian.AppendUint64(to, uint64(h.owner.Offset))
	to = binary.BigEndian.AppendUint32(to, uint32(h.owner.LeaderEpoch))
	to = append(to, h.fingerprint[:]...)
	to = binary.BigEndian.AppendUint64(to, uint64(h.claimedAt))
	return binary.BigEndian.AppendUint64(to, uint64(h.place))
}

func (h *held) parse(data []byte) error {
	if len(data) != recordBytes || data[0] != recordVersion {
		return fmt.Errorf("%w: a claim of %d bytes is not in a format that this version knows",
			errIndex, len(data))
	}
	copy(h.owner.TopicID[:], data[1:])
	h.owner.Partition = int32(binary.BigEndian.Uint32(data[17:]))
	h.owner.Offset = int64(binary.BigEndian.Uint64(data[21:]))
	h.owner.LeaderEpoch = int32(binary.BigEndian.Uint32(data[29:]))
	copy(h.fingerprint[:], data[33:])
	h.claimedAt = int64(binary.BigEndian.Uint64(data[49:]))
	h.place = int64(binary.BigEndian.Uint64(data[57:]))
	return nil
}
