package claimlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog/uuidtext"
)

var (
	// errForeign is for bytes that no version of this package wrote as they are. All processes pass
	// them over.
	errForeign = errors.New("not a block")
	// errNewer is for blocks that only a newer version can apply: to pass them over would part the
	// verdicts.
	errNewer = errors.New("a block was written by a newer version of kdedup; this one cannot go " +
		"on beside it, upgrade it")
)

// block is one that was parsed. Its memory is used again, and its scope and IDs share that of the
// bytes or of the block.
type block struct {
	head
	id     []byte // of a release
	ttl    time.Duration
	seen   sight
	after  int64 // milliseconds
	claims []claim
	lives  []life // of claims with times of their own, one for each
	memory []byte // of the IDs that were packed
}

// longestTTL keeps the end of a claim within an int64.
const longestTTL = uint64(math.MaxInt64 / int64(time.Second) / 4)

// parse reads a block. Its error is errForeign or errNewer.
func (b *block) parse(data []byte) error {
	if len(data) < len(magic)+2+sumBytes || string(data[:len(magic)]) != magic {
		return fmt.Errorf("%w: %d bytes", errForeign, len(data))
	}
	body, sum := data[:len(data)-sumBytes], data[len(data)-sumBytes:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return fmt.Errorf("%w: the checksum is wrong", errForeign)
	}
	if body[2] < firstVersion || body[2] > version ||
		kind(body[3]) < kindClaims || kind(body[3]) > kindRenewal {
		return fmt.Errorf("%w (version %d, kind %d)", errNewer, body[2], body[3])
	}
	r := reader{data: body[4:]}
	b.head = head{version: body[2], kind: kind(body[3]), log: r.fixed(),
		id: blockID{process: r.fixed(), number: r.uvarint()}}
	if b.version > firstVersion {
		b.written = r.varint()
	}
	b.scope = string(r.text())
	b.claims, b.lives, b.memory, b.id = b.claims[:0], b.lives[:0], b.memory[:0], nil
	b.ttl, b.seen, b.after = 0, sight{}, 0
	switch b.kind {
	case kindClaims:
		b.parseClaims(&r)
	case kindImport:
		b.parseLives(&r)
	case kindRenewal:
		b.parseTTL(&r)
		b.parseLives(&r)
	case kindRelease:
		b.id = r.text()
	}
	if r.short || len(r.data) > 0 {
		return fmt.Errorf("%w: its length is wrong", errForeign)
	}
	return nil
}

func (b *block) parseClaims(r *reader) {
	b.parseTTL(r)
	b.parseSight(r)
	b.after = r.varint()
	var last dedup.Coordinates
	for count := r.uvarint(); count > 0 && !r.short; count-- {
		b.claims = append(b.claims, claim{})
		b.parseClaim(r, &last, &b.claims[len(b.claims)-1])
	}
}

func (b *block) parseTTL(r *reader) {
	ttl := r.uvarint()
	if ttl > longestTTL {
		r.short = true
	}
	b.ttl = time.Duration(ttl) * time.Second
}

func (b *block) parseSight(r *reader) {
	b.seen.Next, b.seen.Epoch = r.varint(), int32(r.varint())
	b.seen.Time = r.varint()
	if b.version > firstVersion {
		b.seen.Ends = b.seen.Time + int64(min(r.uvarint(), math.MaxInt64>>1))
	}
}

func (b *block) parseLives(r *reader) {
	b.parseSight(r)
	var (
		last dedup.Coordinates
		life life
	)
	for count := r.uvarint(); count > 0 && !r.short; count-- {
		b.claims = append(b.claims, claim{})
		b.parseClaim(r, &last, &b.claims[len(b.claims)-1])
		life.claimed += r.varint()
		life.ends += r.varint()
		b.lives = append(b.lives, life)
	}
}

func (b *block) parseClaim(r *reader, last *dedup.Coordinates, c *claim) {
	flags := r.uvarint()
	if flags&flagPlace != 0 {
		copy(last.TopicID[:], r.bytes(uint64(len(last.TopicID))))
		last.Partition += int32(r.varint())
		last.LeaderEpoch += int32(r.varint())
	}
	last.Offset += r.varint()
	if flags&flagUUID != 0 {
		start := len(b.memory)
		b.memory = uuidtext.Unpack(b.memory, r.bytes(uuidtext.Bytes))
		c.id = b.memory[start:len(b.memory):len(b.memory)]
	} else {
		c.id = r.bytes(flags >> flagBits)
	}
	copy(c.fingerprint[:], r.bytes(uint64(len(dedup.Fingerprint{}))))
	c.owner = *last
}

// reader takes values off the front of data. Once something is missing it gives zeros, and is
// short.
type reader struct {
	data  []byte
	short bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.data, r.short = nil, true
		return nil
	}
	taken := r.data[:n:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) fixed() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.data, r.short = nil, true
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.data, r.short = nil, true
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) text() []byte { return r.bytes(r.uvarint()) }
