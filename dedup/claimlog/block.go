package claimlog

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog/uuidtext"
)

// A block is stored as
//
//	"kc", version, kind          4 bytes
//	the log's ID, the process    8 bytes each
//	number                       of the block, among those of the process
//	written                      milliseconds by the process's clock; not in version 1
//	scope                        its name
//	body                         that of the kind
//	checksum                     CRC-32C of all before it, 4 bytes
//
// Numbers are varints, texts have their length in front; fixed numbers are little-endian. The body
// of a release is the ID, a forget has none, and claims are
//
//	ttl                          in seconds
//	seen                         how far the claimant had read the shard when it found all of them free: place, epoch, time
//	ends                         how long after it claims in front may hold; not in version 1
//	after                        a time in milliseconds that they must be later than, 0 for none
//	count                        of the claims
//	the claims, each
//	    head                     flags, and above them the length of the ID unless it is a packed UUID
//	    topic ID, partition, epoch   if they are not those of the claim before: 16 bytes, differences
//	    offset                   difference
//	    ID, fingerprint
//
// Imported claims were made in another store. They have seen and count as above, and behind each of
// them
//
//	claimed, ends                milliseconds, differences to the claim before
//
// A renewal is ttl, and claims as imported ones are written: those that hold, with the owners and
// ends that they had at seen.
//
// In the order of a batch neighbours nearly always are of one partition: a claim takes 35 bytes, 16
// of them fingerprint and 16 a UUID.
const (
	magic = "kc"

	// firstVersion is judged by its place and the log's time alone.
	firstVersion = 1
	// version also says when it was written, by which a log's clock that is wrong is known, and
	// claims nothing for IDs to which something happened since seen.
	version = 2

	sumBytes = 4
)

type kind byte

const (
	kindClaims  kind = 1
	kindRelease kind = 2
	kindForget  kind = 3
	kindImport  kind = 4
	kindRenewal kind = 5
)

// The flags of a claim.
const (
	flagUUID  = 1 << iota // the ID is a packed UUID
	flagPlace             // topic ID, partition and epoch follow
	flagBits  = iota
)

// blockID names a block for the process that wrote it.
type blockID struct{ process, number uint64 }

// head begins a block of a kind.
type head struct {
	version byte // 0: firstVersion
	kind    kind
	log     uint64 // the ID that was agreed on
	id      blockID
	written int64 // milliseconds by the writer's clock; 0 in firstVersion
	scope   string
}

func (h *head) append(to []byte) []byte {
	to = append(to, magic...)
	to = append(to, max(h.version, firstVersion), byte(h.kind))
	to = binary.LittleEndian.AppendUint64(to, h.log)
	to = binary.LittleEndian.AppendUint64(to, h.id.process)
	to = binary.AppendUvarint(to, h.id.number)
	if h.version > firstVersion {
		to = binary.AppendVarint(to, h.written)
	}
	return appendText(to, h.scope)
}

func appendText[T ~string | ~[]byte](to []byte, text T) []byte {
	to = binary.AppendUvarint(to, uint64(len(text)))
	return append(to, text...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal ends a block.
func seal(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// claim is one in a block.
type claim struct {
	id          []byte
	owner       dedup.Coordinates
	fingerprint dedup.Fingerprint
}

// sight is how far a shard was read, and what was known there.
type sight struct {
	Position
	Time int64 // of the last block of that
	// until when claims in front of it may hold, at least Time; 0 in firstVersion. With it a reader
	// whose log begins there knows whether anything is missing.
	Ends int64
}

// life is when a claim was made, of those that are imported or renewed, and when it ends; in
// milliseconds of the log's clock.
type life struct{ claimed, ends int64 }

// importBlock is a block of imported claims at the given places in a list.
func importBlock(
	memory []byte, h head, seen sight, claims []dedup.Claim, lives []life, at []int32,
) []byte {
	h.kind = kindImport
	return seal(appendLives(h.append(memory[:0]), h.version, seen, claims, lives, at))
}

// renewalBlock is a block that puts off the ends of claims at the given places in a list.
func renewalBlock(
	h head, ttl time.Duration, seen sight, claims []dedup.Claim, lives []life, at []int32,
) []byte {
	h.kind = kindRenewal
	to := binary.AppendUvarint(h.append(nil), uint64(ttl/time.Second))
	return seal(appendLives(to, h.version, seen, claims, lives, at))
}

// appendLives writes claims with their own times.
func appendLives(
	to []byte, version byte, seen sight, claims []dedup.Claim, lives []life, at []int32,
) []byte {
	to = appendSight(to, version, seen)
	to = binary.AppendUvarint(to, uint64(len(at)))
	var (
		last dedup.Coordinates
		life life
	)
	for _, i := range at {
		to = appendClaim(to, &claims[i], last)
		to = binary.AppendVarint(to, lives[i].claimed-life.claimed)
		to = binary.AppendVarint(to, lives[i].ends-life.ends)
		last, life = claims[i].Owner, lives[i]
	}
	return to
}

func appendSight(to []byte, version byte, seen sight) []byte {
	to = binary.AppendVarint(to, seen.Next)
	to = binary.AppendVarint(to, int64(seen.Epoch))
	to = binary.AppendVarint(to, seen.Time)
	if version > firstVersion {
		to = binary.AppendUvarint(to, uint64(max(0, seen.Ends-seen.Time)))
	}
	return to
}

// claimsBlock is a block of the claims at the given places in a list, in the memory of another one.
func claimsBlock(
	memory []byte, h head, ttl time.Duration, seen sight, claims []dedup.Claim, at []int32,
) []byte {
	h.kind = kindClaims
	to := h.append(memory[:0])
	to = binary.AppendUvarint(to, uint64(ttl/time.Second))
	to = appendSight(to, h.version, seen)
	to = binary.AppendVarint(to, latestAfter(claims, at))
	to = binary.AppendUvarint(to, uint64(len(at)))
	var last dedup.Coordinates
	for _, i := range at {
		to = appendClaim(to, &claims[i], last)
		last = claims[i].Owner
	}
	return seal(to)
}

// latestAfter is one for all: that a claim is a little later than it must be does no harm.
func latestAfter(claims []dedup.Claim, at []int32) (latest int64) {
	for _, i := range at {
		if after := claims[i].After; !after.IsZero() {
			latest = max(latest, after.UnixMilli())
		}
	}
	return latest
}

// appendClaim writes a claim as what is different from the owner before it.
func appendClaim(to []byte, c *dedup.Claim, last dedup.Coordinates) []byte {
	flags := uint64(0)
	if c.Owner.TopicID != last.TopicID || c.Owner.Partition != last.Partition ||
		c.Owner.LeaderEpoch != last.LeaderEpoch {
		flags |= flagPlace
	}
	var packed [uuidtext.Bytes]byte
	uuid, isUUID := uuidtext.Pack(packed[:0], c.ID)
	if isUUID {
		to = binary.AppendUvarint(to, flags|flagUUID)
	} else {
		to = binary.AppendUvarint(to, flags|uint64(len(c.ID))<<flagBits)
	}
	if flags&flagPlace != 0 {
		to = append(to, c.Owner.TopicID[:]...)
		to = binary.AppendVarint(to, int64(c.Owner.Partition)-int64(last.Partition))
		to = binary.AppendVarint(to, int64(c.Owner.LeaderEpoch)-int64(last.LeaderEpoch))
	}
	to = binary.AppendVarint(to, c.Owner.Offset-last.Offset)
	if isUUID {
		to = append(to, uuid...)
	} else {
		to = append(to, c.ID...)
	}
	return append(to, c.Fingerprint[:]...)
}

func releaseBlock(h head, id dedup.ID) []byte {
	h.kind = kindRelease
	return seal(appendText(h.append(nil), id))
}

func forgetBlock(h head) []byte {
	h.kind = kindForget
	return seal(h.append(nil))
}
