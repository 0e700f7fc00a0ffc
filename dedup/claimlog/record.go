package claimlog

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
)

// A claim is kept in an index as its fingerprint, the low 16 bits of the offset, and then what it
// has in common with most claims of its block: the other bits of the offset, the time at which it
// was made, in milliseconds, the place of its block, the leader epoch, the partition and the topic
// ID; all numbers big-endian, but that the low bits stand first.
//
// Earlier versions have written firstRecord (1), topic ID, partition, offset, leader epoch,
// fingerprint, time and place. The length tells one from the other.
const (
	firstRecord      = 1
	firstRecordBytes = 1 + 16 + 4 + 8 + 4 + len(dedup.Fingerprint{}) + 8 + 8

	ownBytes    = len(dedup.Fingerprint{}) + 2
	commonBytes = 6 + 8 + 8 + 4 + 4 + 16
	recordBytes = ownBytes + commonBytes
)

// claimShape has the files of an index store once what the claims of a block have in common.
var claimShape = hashlog.Shape{KeyPrefix: tagBytes, ValueSuffix: commonBytes}

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
	to = append(to, h.fingerprint[:]...)
	offset := uint64(h.owner.Offset)
	to = binary.BigEndian.AppendUint16(to, uint16(offset))
	to = binary.BigEndian.AppendUint16(to, uint16(offset>>48))
	to = binary.BigEndian.AppendUint32(to, uint32(offset>>16))
	to = binary.BigEndian.AppendUint64(to, uint64(h.claimedAt))
	to = binary.BigEndian.AppendUint64(to, uint64(h.place))
	to = binary.BigEndian.AppendUint32(to, uint32(h.owner.LeaderEpoch))
	to = binary.BigEndian.AppendUint32(to, uint32(h.owner.Partition))
	return append(to, h.owner.TopicID[:]...)
}

func (h *held) parse(data []byte) error {
	switch {
	case len(data) == recordBytes:
		h.parsePresent(data)
	case len(data) == firstRecordBytes && data[0] == firstRecord:
		h.parseFirst(data)
	default:
		return fmt.Errorf("%w: a claim of %d bytes is not in a format that this version knows",
			errIndex, len(data))
	}
	return nil
}

func (h *held) parsePresent(data []byte) {
	copy(h.fingerprint[:], data)
	at := data[len(h.fingerprint):]
	h.owner.Offset = int64(uint64(binary.BigEndian.Uint16(at)) |
		uint64(binary.BigEndian.Uint16(at[2:]))<<48 | uint64(binary.BigEndian.Uint32(at[4:]))<<16)
	h.claimedAt = int64(binary.BigEndian.Uint64(at[8:]))
	h.place = int64(binary.BigEndian.Uint64(at[16:]))
	h.owner.LeaderEpoch = int32(binary.BigEndian.Uint32(at[24:]))
	h.owner.Partition = int32(binary.BigEndian.Uint32(at[28:]))
	copy(h.owner.TopicID[:], at[32:])
}

func (h *held) parseFirst(data []byte) {
	copy(h.owner.TopicID[:], data[1:])
	h.owner.Partition = int32(binary.BigEndian.Uint32(data[17:]))
	h.owner.Offset = int64(binary.BigEndian.Uint64(data[21:]))
	h.owner.LeaderEpoch = int32(binary.BigEndian.Uint32(data[29:]))
	copy(h.fingerprint[:], data[33:])
	h.claimedAt = int64(binary.BigEndian.Uint64(data[49:]))
	h.place = int64(binary.BigEndian.Uint64(data[57:]))
}
