package claimlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// errOtherLog is wrapped when a block names another ID than the one that was agreed on, as far as
// this process knows.
var errOtherLog = errors.New("a block belongs to another agreement about the log")

// machine applies blocks to an index. What it makes of a block is a function of the blocks before
// it in its shard, and of nothing else.
type machine struct {
	index  index
	log    string // its ID
	agreed agreement
	shards []shardState
	// how far the index may have applied a shard already: not before, and perhaps beyond, shards
	ahead []Position
	since []recent // by shard
	// how many blocks of a shard have removed claims since the machine was made
	removals []int64
	other    map[uint64]bool // IDs that were agreed on before, or never
	only     Only
	late     int64 // lateness, but in tests

	block block // the last one
	key   []byte
	value []byte
}

// shardState is what applying leaves behind beside the index.
type shardState struct {
	Position
	Time int64 `json:"time"`           // of the last block
	Ends int64 `json:"ends,omitempty"` // of the last block, as Entry has it
	// scopes, and the place of the last block that forgot them
	Forgotten map[string]int64 `json:"forgotten,omitempty"`
	// scopes, and the place of the last block that released one of their claims
	Released map[string]int64 `json:"released,omitempty"`
}

// newMachine goes on where the index was left, or empties it if it is of another log.
func newMachine(x index, log string, a agreement) (*machine, error) {
	m := &machine{
		index: x, log: log, agreed: a, late: lateness.Milliseconds(), other: make(map[uint64]bool),
		shards: make([]shardState, a.Shards), ahead: make([]Position, a.Shards),
		since: make([]recent, a.Shards), removals: make([]int64, a.Shards),
	}
	p := x.saved()
	if p.Log != log || p.Decided != a.ID || len(p.Shards) != a.Shards {
		for i := range m.shards {
			m.shards[i].Epoch, m.ahead[i].Epoch = -1, -1
		}
		return m, x.reset()
	}
	for i, s := range p.Shards {
		m.shards[i] = s.clone()
		if err := m.findAhead(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// findAhead looks for the blocks behind the saved progress that the last process applied, wholly or
// in part.
func (m *machine) findAhead(shard int) error {
	m.ahead[shard] = m.shards[shard].Position
	for {
		value, _, err := m.index.get(noteKey(m.key[:0], shard, m.ahead[shard].Next), 0)
		if err != nil {
			return err
		}
		if len(value) != noteBytes {
			return nil
		}
		m.ahead[shard].Next++
		m.ahead[shard].Epoch = int32(binary.BigEndian.Uint32(value))
	}
}

// A note says that a block was applied, or begun to be. It comes into the index before all else of
// the block. So whatever a crash leaves of that, it is known which blocks the index may know of,
// and the log can be asked whether it still has them.
const noteBytes = 4

// noteKey begins as no scope's tag does.
func noteKey(to []byte, shard int, at int64) []byte {
	to = append(to, make([]byte, tagBytes)...)
	to = binary.BigEndian.AppendUint32(to, uint32(shard))
	return binary.BigEndian.AppendUint64(to, uint64(at))
}

func (m *machine) note(e Entry, now int64) {
	m.key = noteKey(m.key[:0], e.Shard, e.At)
	m.value = binary.BigEndian.AppendUint32(m.value[:0], uint32(e.Epoch))
	// needed until the progress is saved, and what ends later is kept until then
	m.index.put(m.key, m.value, now+1)
}

// recent says where the index ended when the last blocks of a shard came: what their claims and
// those behind them put stands behind that.
type recent [32]struct {
	place int64
	end   uint64
}

func (r *recent) note(place int64, end uint64) {
	at := &r[place%int64(len(r))]
	at.place, at.end = place, end
}

// of is 0 if it is not known.
func (r *recent) of(place int64) uint64 {
	if at := r[place%int64(len(r))]; at.place == place {
		return at.end
	}
	return 0
}

func (s *shardState) sight() sight { return sight{s.Position, s.Time} }

func (s shardState) clone() shardState {
	s.Forgotten, s.Released = maps.Clone(s.Forgotten), maps.Clone(s.Released)
	return s
}

func noteScope(places *map[string]int64, scope string, at int64) {
	if *places == nil {
		*places = make(map[string]int64)
	}
	(*places)[scope] = at
}

// removedSince reports whether claims of a scope were removed at a place or behind it.
func (s *shardState) removedSince(scope string, place int64) bool {
	released, some := s.Released[scope]
	forgotten, all := s.Forgotten[scope]
	return some && released >= place || all && forgotten >= place
}

// progress is where the machine stands now.
func (m *machine) progress() progress {
	p := progress{Log: m.log, Decided: m.agreed.ID}
	for _, s := range m.shards {
		p.Shards = append(p.Shards, s.clone())
	}
	return p
}

func (m *machine) positions() []Position {
	at := make([]Position, len(m.shards))
	for i := range m.shards {
		at[i] = m.shards[i].Position
	}
	return at
}

// apply does what the entry's block says, and has tell hear the answer to each claim of it, if it
// is not nil for this block. After an error nothing was applied, or the index is done for.
func (m *machine) apply(
	ctx context.Context, e Entry, told func(blockID) func(claim int, a dedup.Answer),
) error {
	s := &m.shards[e.Shard]
	if e.At != s.Next || e.Epoch < s.Epoch {
		return fmt.Errorf("%w: after place %d of shard %d, of epoch %d, comes place %d of epoch %d",
			ErrCut, s.Next-1, e.Shard, s.Epoch, e.At, e.Epoch)
	}
	ahead := &m.ahead[e.Shard]
	if e.At < ahead.Next && (e.Epoch > ahead.Epoch || e.At == ahead.Next-1 &&
		e.Epoch != ahead.Epoch) {
		return fmt.Errorf(
			"%w: place %d of shard %d was applied up to %d in epoch %d, and is of epoch %d now",
			ErrCut, e.At, e.Shard, ahead.Next, ahead.Epoch, e.Epoch)
	}
	if e.At >= ahead.Next { // otherwise the index may have what this block and later ones put
		m.since[e.Shard].note(e.At, m.index.end())
	}
	b, now := &m.block, max(e.Time, s.Time)
	err := b.parse(e.Block)
	switch {
	case errors.Is(err, errNewer):
	case err != nil: // it only takes its place
		err = m.flush(ctx, e, now)
	default:
		err = m.applyBlock(ctx, e, now, told(b.head.id))
	}
	if err != nil {
		return fmt.Errorf("shard %d, place %d: %w", e.Shard, e.At, err)
	}
	s.Next, s.Epoch, s.Time, s.Ends = e.At+1, e.Epoch, now, e.Ends
	if s.Next >= ahead.Next {
		*ahead = s.Position
	}
	return nil
}

func (m *machine) applyBlock(
	ctx context.Context, e Entry, now int64, tell func(int, dedup.Answer),
) error {
	b := &m.block
	if b.log != m.agreed.ID {
		if !m.other[b.log] {
			return otherLogError{b.log} // what to make of it, the log's reader must find out
		}
		return m.flush(ctx, e, now)
	}
	m.note(e, now)
	s := &m.shards[e.Shard]
	tag := s.tag(b.scope)
	switch b.kind {
	case kindClaims, kindImport:
		if err := m.claim(tag, e, now, tell); err != nil {
			return err
		}
	case kindRenewal:
		if err := m.renew(tag, e, now, tell); err != nil {
			return err
		}
	case kindRelease:
		m.removals[e.Shard]++
		noteScope(&s.Released, b.scope, e.At)
		if err := m.release(tag, now); err != nil {
			return err
		}
	case kindForget:
		m.removals[e.Shard]++
		noteScope(&s.Forgotten, b.scope, e.At)
	}
	if err := m.index.flush(ctx); err != nil {
		return err
	}
	if tell != nil && (b.kind == kindRelease || b.kind == kindForget) {
		tell(0, dedup.Answer{})
	}
	return nil
}

// flush takes note of a block that changes nothing.
func (m *machine) flush(ctx context.Context, e Entry, now int64) error {
	m.note(e, now)
	return m.index.flush(ctx)
}

type otherLogError struct{ id uint64 }

func (e otherLogError) Error() string { return fmt.Sprintf("%v (%x)", errOtherLog, e.id) }
func (e otherLogError) Unwrap() error { return errOtherLog }

// lateness is how much later than what its claimant had read a block of claims may come to stand in
// the log: so long a log must keep blocks beyond the ttl. It also keeps an append that was given up
// long ago from claiming anything.
const lateness = 10 * time.Minute

// Margin is how much longer than the ttl a log must keep blocks: for those that come late, and
// because clocks of brokers differ.
const Margin = time.Hour

// claim judges the claims of a block. Their claimant has read the shard up to a place, and found
// that all of them were free there; so only what was claimed since can be in their way. Older
// blocks need not be known, which is why processes agree whose log began at different places. (Were
// copies claimed against all that is there, the first copy that retention has left would be taken
// for the owner by a process that reads the log again.)
//
// What the claimant has read must be what is there. It surely is if the last block that it read has
// the epoch of this one: an epoch is written by one leader, and nothing below one of its blocks is
// cut without that block. And the block must not come later than it may. Otherwise it claims
// nothing, and its claims stay undecided; the claimant has then read what it had not, and claims
// again.
//
// An imported claim has its own times. One that has ended by now is not made, and is told as none.
func (m *machine) claim(
	tag [tagBytes]byte, e Entry, now int64, tell func(int, dedup.Answer),
) error {
	b := &m.block
	if !b.seen.reaches(e, now, m.late) {
		return nil
	}
	since := m.since[e.Shard].of(b.seen.Next)
	nothingSince := since == m.index.end() // nor will there be, until the block is flushed
	mine := held{claimedAt: now, place: e.At}
	if b.after >= now {
		mine.claimedAt = b.after + 1
	}
	ends := now + b.ttl.Milliseconds()
	for i := range b.claims {
		c := &b.claims[i]
		m.key = append(append(m.key[:0], tag[:]...), c.id...)
		var owner held
		found := false
		if !nothingSince {
			var err error
			if owner, _, found, err = m.get(m.key, now, since); err != nil {
				return err
			}
			found = found && owner.place >= b.seen.Next
		}
		if b.kind == kindImport {
			mine.claimedAt, ends = b.lives[i].claimed, b.lives[i].ends
			if !found && ends <= now {
				if tell != nil {
					tell(i, dedup.Answer{})
				}
				continue
			}
		}
		if !found && (m.only == nil || m.only(b.scope, dedup.ID(c.id))) {
			mine.owner, mine.fingerprint = c.owner, c.fingerprint
			m.value = mine.append(m.value[:0])
			m.index.put(m.key, m.value, ends)
		}
		switch {
		case tell == nil:
		case found:
			tell(i, owner.answer(dedup.Exists))
		default:
			tell(i, mine.answer(dedup.Applied))
		}
	}
	return nil
}

// reaches tells whether what a claimant had read is still there in front of a block, and is not too
// old.
func (s sight) reaches(e Entry, now, late int64) bool {
	if s.Epoch < 0 { // of an empty shard
		return s.Next == e.At
	}
	return s.Epoch == e.Epoch && s.Next <= e.At && now-s.Time <= late
}

func (m *machine) release(tag [tagBytes]byte, now int64) error {
	m.key = append(append(m.key[:0], tag[:]...), m.block.id...)
	_, ends, found, err := m.get(m.key, now, 0)
	if err == nil && found {
		m.index.remove(m.key, ends)
	}
	return err
}

// get returns the claim that holds a key at a time. Claims from before a point of the index may be
// passed over.
func (m *machine) get(
	key []byte, now int64, since uint64,
) (owner held, ends int64, found bool, err error) {
	value, ends, err := m.index.get(key, since)
	if err != nil || value == nil || ends <= now {
		return held{}, 0, false, err
	}
	if err := owner.parse(value); err != nil {
		return held{}, 0, false, err
	}
	return owner, ends, true, nil
}

// lookup answers who owns an ID, by a clock that may be ahead of the shard's last block.
func (m *machine) lookup(shard int, scope string, id dedup.ID, now int64) (dedup.Answer, error) {
	owner, _, found, err := m.find(shard, scope, id, now)
	if err != nil || !found {
		return dedup.Answer{}, err
	}
	return owner.answer(dedup.Exists), nil
}

// find is get by the ID.
func (m *machine) find(
	shard int, scope string, id dedup.ID, now int64,
) (owner held, ends int64, found bool, err error) {
	s := &m.shards[shard]
	tag := s.tag(scope)
	return m.get(append(tag[:], id...), max(now, s.Time), 0)
}

const tagBytes = 8

// tag stands for a scope in the keys of an index. Once the scope is forgotten it has another one.
func (s *shardState) tag(scope string) (tag [tagBytes]byte) {
	at, forgotten := s.Forgotten[scope]
	if !forgotten {
		at = -1
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(scope), uint64(at)))
	copy(tag[:], sum[:])
	return tag
}
