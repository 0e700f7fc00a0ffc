package claimlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A reply is what a keeper says. As bytes it is
//
//	version, operation, status   1 byte each
//	why                          a text, unless the status is fine; then nothing follows
//	log, agreement, keeper       of the process that answers
//	count                        of the sections, each
//	    shard
//	    status, why              why is a text, and missing if the status is fine
//	    seen                     how far the keeper has read the shard now; of claims and imports
//	    time                     of the log's clock, in milliseconds, or a ticket
//	    count                    of the answers, each
//	        outcome              1 byte, and above the outcome 1 bit: settled
//	        claimed              milliseconds, difference to the answer before; unless undecided
//	        ends                 likewise; of opFind only
//	        owner, fingerprint   as of a claim without an ID; unless undecided, or applied
//
// Who asks compares the log, the keeper and the shards with those that it means: an address may
// have been given to another process.
type reply struct {
	op       operation
	status   status
	why      string
	log      identity
	keeper   uint64
	sections []answered
}

// status says what became of a request, or of a section.
type status byte

const (
	fine status = 0
	// failed: what was asked may have been done or not. Answers that are not undecided are good.
	failed status = 1
	// notKept: the process does not keep the shard, or has not read it up to its end.
	notKept status = 2
	// otherLog: the process means another log, or is another process.
	otherLog status = 3
	// unknown: the process does not know this version of requests.
	unknown status = 4
	// notSeen: who claims has not said how far it knows the shard; the reply tells.
	notSeen status = 5
	// stale: the ticket is not one, or too old. Nothing was done.
	stale status = 6
)

// answered is what a keeper says of one shard.
type answered struct {
	shard   int
	status  status
	why     string
	seen    sight
	time    int64
	answers []dedup.Answer
	settled []bool
	ends    []int64
}

var (
	errNotKept  = errors.New("the process does not keep the shard, or is reading it")
	errOtherOne = errors.New("the process that answers, or its log, is another one than was asked")
	errNotSeen  = errors.New("how far the shard was read is asked for")
	errStale    = errors.New("the request came late")
	errRemote   = errors.New("the keeper says")
)

// err is that of a status.
func (s status) err(why string) error {
	switch s {
	case fine:
		return nil
	case notKept:
		return errNotKept
	case notSeen:
		return errNotSeen
	case stale:
		return errStale
	case otherLog:
		return fmt.Errorf("%w: %s", errOtherOne, why)
	case unknown:
		return fmt.Errorf("%w: %s", errWireVersion, why)
	default:
		return fmt.Errorf("%w: %s", errRemote, why)
	}
}

func (a *reply) append(to []byte) []byte {
	to = append(to, wireVersion, byte(a.op), byte(a.status))
	if a.status != fine {
		return appendText(to, a.why)
	}
	to = appendText(to, a.log.log)
	to = binary.LittleEndian.AppendUint64(to, a.log.agreed)
	to = binary.LittleEndian.AppendUint64(to, a.keeper)
	to = binary.AppendUvarint(to, uint64(len(a.sections)))
	for i := range a.sections {
		to = a.appendSection(to, &a.sections[i])
	}
	return to
}

const settledBit = 1 << 7

func (a *reply) appendSection(to []byte, s *answered) []byte {
	to = binary.AppendUvarint(to, uint64(s.shard))
	to = append(to, byte(s.status))
	if s.status != fine {
		to = appendText(to, s.why)
	}
	if a.op.claims() {
		to = appendSight(to, version, s.seen)
	}
	if a.op == opTime || a.op == opTicket {
		to = binary.AppendVarint(to, s.time)
	}
	to = binary.AppendUvarint(to, uint64(len(s.answers)))
	var (
		last          dedup.Coordinates
		claimed, ends int64
	)
	for i := range s.answers {
		one := &s.answers[i]
		outcome := byte(one.Outcome)
		if s.settled != nil && s.settled[i] {
			outcome |= settledBit
		}
		if to = append(to, outcome); one.Outcome == dedup.Undecided {
			continue
		}
		at := one.ClaimedAt.UnixMilli()
		to, claimed = binary.AppendVarint(to, at-claimed), at
		if a.op == opFind {
			to, ends = binary.AppendVarint(to, s.ends[i]-ends), s.ends[i]
		}
		if one.Outcome != dedup.Applied {
			owner := dedup.Claim{Owner: one.Owner, Fingerprint: one.Fingerprint}
			to, last = appendClaim(to, &owner, last), one.Owner
		}
	}
	return to
}

// parseReply reads what a keeper says to a request. What it says must fit to that.
func parseReply(data []byte, q *request) (*reply, error) {
	op, r, err := wireHead(data)
	if err != nil {
		return nil, err
	}
	a := &reply{op: op}
	if b := r.bytes(1); len(b) > 0 {
		a.status = status(b[0])
	}
	if a.status != fine {
		a.why = string(r.text())
		return a, a.check(r, q)
	}
	a.log = identity{string(r.text()), r.fixed()}
	a.keeper = r.fixed()
	for count := r.uvarint(); count > 0 && !r.short; count-- {
		a.sections = append(a.sections, a.parseSection(r))
	}
	return a, a.check(r, q)
}

// check compares a reply with the request.
func (a *reply) check(r *reader, q *request) error {
	switch {
	case r.short || len(r.data) > 0:
		return fmt.Errorf("%w: its length is wrong", errWire)
	case a.status != fine:
		return a.status.err(a.why)
	case a.op != q.op:
		return fmt.Errorf("%w: operation %d instead of %d", errWire, a.op, q.op)
	case a.log != q.log || a.keeper != q.keeper:
		return fmt.Errorf("%w: log %v and process %x instead of %v and %x", errOtherOne, a.log,
			a.keeper, q.log, q.keeper)
	case q.op == opKept:
		return nil
	case len(a.sections) != len(q.sections):
		return fmt.Errorf("%w: %d shards instead of %d", errWire, len(a.sections), len(q.sections))
	}
	for i := range a.sections {
		got, want := &a.sections[i], &q.sections[i]
		if got.shard != want.shard {
			return fmt.Errorf("%w: shard %d instead of %d", errOtherOne, got.shard, want.shard)
		}
		if len(got.answers) != len(want.claims) && (got.status == fine || got.answers != nil) {
			return fmt.Errorf("%w: %d answers to %d claims", errWire, len(got.answers),
				len(want.claims))
		}
		for j := range got.answers {
			if one := &got.answers[j]; one.Outcome == dedup.Applied {
				one.Owner, one.Fingerprint = want.claims[j].Owner, want.claims[j].Fingerprint
			}
		}
	}
	return nil
}

func (a *reply) parseSection(r *reader) answered {
	s := answered{shard: int(min(r.uvarint(), 1<<31))}
	if b := r.bytes(1); len(b) > 0 {
		s.status = status(b[0])
	}
	if s.status != fine {
		s.why = string(r.text())
	}
	if a.op.claims() {
		s.seen = parseSight(r)
	}
	if a.op == opTime || a.op == opTicket {
		s.time = r.varint()
	}
	count := r.uvarint()
	if count > uint64(len(r.data)) { // each takes a byte at least
		r.short = true
		return s
	}
	if count == 0 {
		return s
	}
	s.answers = make([]dedup.Answer, count)
	if a.op == opImport {
		s.settled = make([]bool, count)
	}
	if a.op == opFind {
		s.ends = make([]int64, count)
	}
	var (
		b             block
		last          dedup.Coordinates
		claimed, ends int64
		owner         claim
	)
	for i := range s.answers {
		outcome := r.bytes(1)
		if len(outcome) == 0 {
			return s
		}
		if s.settled != nil {
			s.settled[i] = outcome[0]&settledBit != 0
		}
		one := &s.answers[i]
		if one.Outcome = dedup.Outcome(outcome[0] &^ settledBit); one.Outcome > dedup.Exists {
			r.short = true
			return s
		}
		if one.Outcome == dedup.Undecided {
			continue
		}
		claimed += r.varint()
		one.ClaimedAt = time.UnixMilli(claimed)
		if s.ends != nil {
			ends += r.varint()
			s.ends[i] = ends
		}
		if one.Outcome != dedup.Applied {
			b.parseClaim(r, &last, &owner)
			one.Owner, one.Fingerprint = owner.owner, owner.fingerprint
		}
	}
	return s
}
