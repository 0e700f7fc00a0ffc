package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kdedup/kdedup/dedup"
)

// The keys of the database begin with what they are.
const (
	scopePrefix = 's' // length of the consumer group, consumer group, name -> scopeRecord in JSON
	claimPrefix = 'c' // number of the scope, message ID -> claimRecord
	endPrefix   = 'e' // when claims end in milliseconds, random number -> the keys of these claims
)

func claimKey(to []byte, scope uint32, id dedup.ID) []byte {
	to = append(to, claimPrefix)
	to = binary.BigEndian.AppendUint32(to, scope)
	return append(to, id...)
}

// endKey orders by time; the random number keeps calls of one millisecond apart.
func endKey(expiresAt int64, random uint64) []byte {
	key := binary.BigEndian.AppendUint64([]byte{endPrefix}, uint64(expiresAt))
	return binary.BigEndian.AppendUint64(key, random)
}

// appendEnding adds the key of a claim to the value under an endKey.
func appendEnding(to, key []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(key)))
	return append(to, key...)
}

var errEnding = errors.New("a list of ending claims is cut off")

// parseEndings returns the keys in a value, which they share.
func parseEndings(value []byte) (keys [][]byte, err error) {
	for len(value) > 0 {
		n, used := binary.Uvarint(value)
		if used <= 0 || n > uint64(len(value)-used) {
			return nil, errEnding
		}
		keys = append(keys, value[used:used+int(n)])
		value = value[used+int(n):]
	}
	return keys, nil
}

func hash(key []byte) uint64 { return xxhash.Sum64(key) }

// A claim is stored as its version, topic ID, partition, offset, leader epoch, fingerprint, and the
// times at which it was made and ends, in milliseconds; all numbers big-endian.
const (
	recordVersion = 1
	recordBytes   = 1 + 16 + 4 + 8 + 4 + len(dedup.Fingerprint{}) + 8 + 8
)

// claimRecord is a claim as it is stored.
type claimRecord struct {
	owner       dedup.Coordinates
	fingerprint dedup.Fingerprint
	claimedAt   int64
	expiresAt   int64
}

func (r *claimRecord) answer() dedup.Answer {
	return dedup.Answer{
		Outcome: dedup.Exists, Owner: r.owner, Fingerprint: r.fingerprint, ClaimedAt: time.UnixMilli(r.claimedAt),
	}
}

func (r *claimRecord) append(to []byte) []byte {
	to = append(to, recordVersion)
	to = append(to, r.owner.TopicID[:]...)
	to = binary.BigEndian.AppendUint32(to, uint32(r.owner.Partition))
	to = binary.BigEndian.AppendUint64(to, uint64(r.owner.Offset))
	to = binary.BigEndian.AppendUint32(to, uint32(r.owner.LeaderEpoch))
	to = append(to, r.fingerprint[:]...)
	to = binary.BigEndian.AppendUint64(to, uint64(r.claimedAt))
	return binary.BigEndian.AppendUint64(to, uint64(r.expiresAt))
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
	r.expiresAt = int64(binary.BigEndian.Uint64(data[57:]))
	return r, nil
}
