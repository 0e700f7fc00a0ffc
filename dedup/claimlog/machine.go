package claimlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	// how many blocks of a shard have removed claims, or set its time back, since the machine was
	// made
	removals []int64
	older    int64           // blocks of processes that read firstVersion only, likewise
	void     error           // why the last block counts for nothing, if its writer has to know
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
	// of the newest block; older ones behind it count for nothing
	Version byte  `json:"version,omitempty"`
	Time    int64 `json:"time"` // of the last block
	Skew    skew  `json:"skew,omitzero"`
	Rise    rise  `json:"rise,omitzero"`
	Ends    int64 `json:"ends,omitempty"`   // of the last block, as Entry has it
	Latest  int64 `json:"latest,omitempty"` // end of all claims that were put
	// the longest time for which a claim was put, in milliseconds, of those up to Latest
	Longest int64 `json:"longest,omitempty"`
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
			m.shards[i].Version = m.firstVersion()
		}
		return m, x.reset()
	}
	for i, s := range p.Shards {
		m.shards[i] = s.clone()
		m.shards[i].Version = max(s.Version, m.firstVersion())
		if s.Latest == 0 && s.Epoch >= 0 { // of a version that did not note it
			m.shards[i].Latest = x.latest()
			m.shards[i].Longest = max(0, x.latest()-s.Time)
		}
		if err := m.findAhead(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// firstVersion is that of the blocks with which the log begins.
func (m *machine) firstVersion() byte {
	if m.agreed.Version > firstAgreement {
		return version
	}
	return firstVersion
}

// version is that of the newest block in any shard.
func (m *machine) version() (newest byte) {
	for i := range m.shards {
		newest = max(newest, m.shards[i].Version)
	}
	return newest
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
		switch len(value) {
		case noteBytes:
			m.ahead[shard].Next++
			m.ahead[shard].Epoch = int32(binary.BigEndian.Uint32(value))
		case gapBytes:
			m.ahead[shard].Next = int64(binary.BigEndian.Uint64(value))
		default:
			return nil
		}
	}
}

// A note says that a block was applied, or begun to be. It comes into the index before all else of
// the block. So whatever a crash leaves of that, it is known which blocks the index may know of,
// and the log can be asked whether it still has them.
const noteBytes = 4

// The note of places without a block stands at the first of them, and names the place behind them.
const gapBytes = 8

// noteKey begins as no scope's tag does.
func noteKey(to []byte, shard int, at int64) []byte {
	to = append(to, make([]byte, tagBytes)...)
	to = binary.BigEndian.AppendUint32(to, uint32(shard))
	return binary.BigEndian.AppendUint64(to, uint64(at))
}

func (m *machine) note(e Entry, now int64) {
	if next := m.shards[e.Shard].Next; next < e.At {
		m.key = noteKey(m.key[:0], e.Shard, next)
		m.value = binary.BigEndian.AppendUint64(m.value[:0], uint64(e.At))
		m.index.put(m.key, m.value, now+1)
	}
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

func (s *shardState) sight() sight { return sight{s.Position, s.Time, s.Latest} }

func (s shardState) clone() shardState {
	s.Forgotten, s.Released = maps.Clone(s.Forgotten), maps.Clone(s.Released)
	s.Rise.Lows = slices.Clone(s.Rise.Lows)
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
	if e.At < s.Next || e.Epoch < s.Epoch {
		return fmt.Errorf(
			"%w: after place %d of shard %d, of epoch %d, comes place %d of epoch %d",
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
	next := moment{now: s.Time, skew: s.Skew} // of what takes its place only
	if s.Version == firstVersion {
		next.now, next.own = max(e.Time, s.Time), e.Time
	}
	b, newest := &m.block, s.Version
	m.void = nil
	err := b.parse(e.Block)
	switch {
	case errors.Is(err, errNewer):
	case err != nil: // it only takes its place
		err = m.flush(ctx, e, next.now)
	case b.log != m.agreed.ID:
		err = m.passOver(ctx, e, next.now)
	case b.version < s.Version:
		told(b.head.id)
		m.void, err = errOlder, m.flush(ctx, e, next.now)
	default:
		next, newest = s.momentOf(e, b, m.late), b.version
		err = m.applyBlock(ctx, e, next, told(b.head.id))
	}
	if err != nil {
		return fmt.Errorf("shard %d, place %d: %w", e.Shard, e.At, err)
	}
	if next.now < s.Time {
		m.removals[e.Shard]++ // as what had ended may hold again
	}
	if next.own != 0 {
		s.Rise.add(e.At, next.own, m.late)
	}
	s.Next, s.Epoch, s.Ends = e.At+1, e.Epoch, e.Ends
	s.Time, s.Skew, s.Version = next.now, next.skew, newest
	if s.Next >= ahead.Next {
		*ahead = s.Position
	}
	return nil
}

// errOlder is for a block of an older version behind one of a newer, which the processes of that
// older version do not go beyond. One that knows both writes it again.
var errOlder = errors.New("the log has newer blocks by now; the block is written again")

// errSkew is for a block that came too late, or whose log has a wrong clock.
var errSkew = errors.New("the claim log's clock is ahead of this machine's, so claims would end at " +
	"the wrong time; set the clocks of brokers and machines right")

func (m *machine) applyBlock(
	ctx context.Context, e Entry, at moment, tell func(int, dedup.Answer),
) (err error) {
	b, now := &m.block, at.now
	m.note(e, now)
	if !marked(b.head.id.process) {
		m.older++
	}
	s := &m.shards[e.Shard]
	tag := s.tag(b.scope)
	switch {
	case b.kind == kindRelease:
		m.removals[e.Shard]++
		noteScope(&s.Released, b.scope, e.At)
		err = m.release(tag)
	case b.kind == kindForget:
		m.removals[e.Shard]++
		noteScope(&s.Forgotten, b.scope, e.At)
	case at.unexplained:
		m.void = fmt.Errorf("%w (by %v)", errSkew, milliseconds(at.skew.By).Round(time.Second))
	case b.kind == kindRenewal:
		err = m.renew(tag, e, at, tell)
	default:
		err = m.claim(tag, e, at, tell)
	}
	if err != nil {
		return err
	}
	if err := m.index.flush(ctx); err != nil {
		return err
	}
	if tell != nil && (b.kind == kindRelease || b.kind == kindForget) {
		tell(0, dedup.Answer{})
	}
	return nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// passOver takes note of a block of another agreement. What to make of one that is not known, the
// log's reader must find out.
func (m *machine) passOver(ctx context.Context, e Entry, now int64) error {
	if !m.other[m.block.log] {
		return otherLogError{m.block.log}
	}
	return m.flush(ctx, e, now)
}

// flush takes note of a block that changes nothing.
func (m *machine) flush(ctx context.Context, e Entry, now int64) error {
	m.note(e, now)
	return m.index.flush(ctx)
}

type otherLogError struct{ id uint64 }

func (e otherLogError) Error() string { return fmt.Sprintf("%v (%x)", errOtherLog, e.id) }
func (e otherLogError) Unwrap() error { return errOtherLog }

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
	return m.get(append(tag[:], id...), max(now, s.Time))
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
