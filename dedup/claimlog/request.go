package claimlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A request asks a keeper about some of its shards. As bytes it is
//
//	version, operation           1 byte each
//	group, log                   texts
//	agreement, keeper            8 bytes each: which log is meant, and which process
//	limit                        milliseconds after which nobody waits for the reply any more
//	scope                        its name, ttl in milliseconds, 1 byte that tells if it is sliding
//	count                        of the sections, each
//	    shard
//	    ticket                   of a release or a forget, see tickets
//	    seen                     of claims and imports, as in a block: how far whoever asks knows
//	                             that the shard was read
//	    after, count             see claims of a block
//	    the claims, each as in a block, and behind each that is imported claimed and ends
//	    copied                   a bit for each claim, if the operation is to claim
//
// Numbers and texts are as in a block. Only processes of one release need to understand each other:
// a keeper refuses a version that it does not know, and who asked keeps the shard itself.
type request struct {
	op       operation
	group    string
	log      identity
	keeper   uint64
	limit    time.Duration
	scope    dedup.Scope
	sections []section
}

const wireVersion = 1

type operation byte

const (
	opClaim   operation = 1
	opImport  operation = 2
	opLookup  operation = 3
	opRelease operation = 4
	opForget  operation = 5
	opFind    operation = 6
	opTime    operation = 7
	// opKept waits until the keeper keeps other shards than it did, and tells which.
	opKept operation = 8
	// opTicket asks for a ticket.
	opTicket operation = 9
)

// claims tells of operations whose blocks count by what has happened since seen.
func (o operation) claims() bool { return o == opClaim || o == opImport }

// once tells of operations that must not be repeated by themselves, nor come late: they undo what
// was claimed since.
func (o operation) once() bool { return o == opRelease || o == opForget }

// section is what is asked of one shard. Operations that need only IDs take those of the claims.
type section struct {
	shard  int
	ticket int64
	seen   sight
	claims []dedup.Claim
	lives  []life // of an import
}

func (q *request) append(to []byte) []byte {
	to = append(to, wireVersion, byte(q.op))
	to = appendText(to, q.group)
	to = appendText(to, q.log.log)
	to = binary.LittleEndian.AppendUint64(to, q.log.agreed)
	to = binary.LittleEndian.AppendUint64(to, q.keeper)
	to = binary.AppendUvarint(to, uint64(max(0, q.limit.Milliseconds())))
	to = appendText(to, q.scope.Name)
	to = binary.AppendUvarint(to, uint64(q.scope.TTL.Milliseconds()))
	to = append(to, bit(q.scope.Sliding))
	to = binary.AppendUvarint(to, uint64(len(q.sections)))
	for i := range q.sections {
		to = q.appendSection(to, &q.sections[i])
	}
	return to
}

func bit(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func (q *request) appendSection(to []byte, s *section) []byte {
	to = binary.AppendUvarint(to, uint64(s.shard))
	if q.op.once() {
		to = binary.AppendVarint(to, s.ticket)
	}
	if q.op.claims() {
		to = appendSight(to, version, s.seen)
	}
	after := int64(0)
	for i := range s.claims {
		if at := s.claims[i].After; !at.IsZero() {
			after = max(after, at.UnixMilli())
		}
	}
	to = binary.AppendVarint(to, after)
	to = binary.AppendUvarint(to, uint64(len(s.claims)))
	var (
		last dedup.Coordinates
		life life
	)
	for i := range s.claims {
		to = appendClaim(to, &s.claims[i], last)
		last = s.claims[i].Owner
		if q.op == opImport {
			to = binary.AppendVarint(to, s.lives[i].claimed-life.claimed)
			to = binary.AppendVarint(to, s.lives[i].ends-life.ends)
			life = s.lives[i]
		}
	}
	if q.op == opClaim {
		to = appendBits(to, len(s.claims), func(i int) bool { return s.claims[i].Copied })
	}
	return to
}

// appendBits writes a bit for each of a number of things.
func appendBits(to []byte, count int, is func(int) bool) []byte {
	start := len(to)
	to = append(to, make([]byte, (count+7)/8)...)
	for i := range count {
		to[start+i/8] |= bit(is(i)) << (i % 8)
	}
	return to
}

func hasBit(bits []byte, i int) bool { return i/8 < len(bits) && bits[i/8]>>(i%8)&1 != 0 }

var (
	errWire        = errors.New("not a message between keepers")
	errWireVersion = errors.New("a message between keepers of another version of kdedup")
)

// wireHead takes the version and the operation off the front.
func wireHead(data []byte) (operation, *reader, error) {
	if len(data) < 2 {
		return 0, nil, fmt.Errorf("%w: %d bytes", errWire, len(data))
	}
	op := operation(data[1])
	if data[0] != wireVersion || op < opClaim || op > opTicket {
		return 0, nil, fmt.Errorf("%w (version %d, operation %d)", errWireVersion, data[0], op)
	}
	return op, &reader{data: data[2:]}, nil
}

// parseRequest reads what a process asks. The request does not share memory with the bytes.
func parseRequest(data []byte) (*request, error) {
	op, r, err := wireHead(data)
	if err != nil {
		return nil, err
	}
	q := &request{op: op, group: string(r.text())}
	q.log = identity{string(r.text()), r.fixed()}
	q.keeper = r.fixed()
	q.limit = milliseconds(int64(min(r.uvarint(), mostLimit)))
	q.scope = dedup.Scope{ConsumerGroup: q.group, Name: string(r.text())}
	ttl := r.uvarint()
	if ttl > longestTTL {
		r.short = true
	}
	q.scope.TTL = milliseconds(int64(ttl))
	sliding := r.bytes(1)
	q.scope.Sliding = len(sliding) > 0 && sliding[0] != 0
	for count := r.uvarint(); count > 0 && !r.short; count-- {
		q.sections = append(q.sections, q.parseSection(r))
	}
	if r.short || len(r.data) > 0 {
		return nil, fmt.Errorf("%w: its length is wrong", errWire)
	}
	return q, nil
}

// mostLimit bounds what a request may want: a minute.
const mostLimit = 60_000

func parseSight(r *reader) sight {
	b := block{head: head{version: version}}
	b.parseSight(r)
	return b.seen
}

func (q *request) parseSection(r *reader) section {
	s := section{shard: int(min(r.uvarint(), 1<<31))}
	if q.op.once() {
		s.ticket = r.varint()
	}
	if q.op.claims() {
		s.seen = parseSight(r)
	}
	after := r.varint()
	count := r.uvarint()
	if count > uint64(len(r.data)) { // each takes more than a byte
		r.short = true
		return s
	}
	var (
		b    block // has the memory of packed IDs
		last dedup.Coordinates
		l    life
		c    claim
	)
	s.claims = make([]dedup.Claim, 0, count)
	for range count {
		b.parseClaim(r, &last, &c)
		one := dedup.Claim{ID: dedup.ID(c.id), Owner: c.owner, Fingerprint: c.fingerprint}
		if after != 0 {
			one.After = time.UnixMilli(after)
		}
		s.claims = append(s.claims, one)
		if q.op == opImport {
			l.claimed += r.varint()
			l.ends += r.varint()
			s.lives = append(s.lives, l)
		}
		b.memory = b.memory[:0] // the ID was copied
	}
	if q.op == opClaim {
		copied := r.bytes((count + 7) / 8)
		for i := range s.claims {
			s.claims[i].Copied = hasBit(copied, i)
		}
	}
	return s
}
