package claimlog

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// The log keeps blocks for longer than the longest ttl and twice the longest lateness.
const (
	modelRetention = 13_000
	modelLateness  = 3_000
	modelTTL       = 6 // seconds
	modelJitter    = 200
)

// modelLog is a log as an array per shard, the clocks of those who write to it, and what has become
// of their blocks.
type modelLog struct {
	agreed agreement
	id     int
	epoch  int32
	first  []int64 // place at which a shard begins
	next   []int64 // place of its next block
	shards [][]modelEntry

	real   int64 // the time as it is
	broker int64 // by how much the brokers' clocks are ahead of it
	hosts  int64 // by how much those of the writers are
	brief  int   // they are set right after so many blocks; 0: not yet
	newest bool  // blocks of the present version are written

	number uint64
	late   []lateBlock
	// offsets of owners whose blocks came to stand while clocks were wrong: they may hold longer
	// than the log keeps them
	unsure map[int64]bool
}

// modelEntry is a block in its place, and what nobody who reads it can know.
type modelEntry struct {
	Entry
	real  int64 // when it came to stand there
	sure  bool  // the writers' clocks were right then, and when it was written
	right bool  // and so were the brokers', or ahead by so much that every block shows it
}

// lateBlock is one that was written, and does not stand in the log yet.
type lateBlock struct {
	shard int
	block []byte
}

func (l *modelLog) append(r *rand.Rand, shard int, data []byte) {
	if l.newest && r.IntN(25) == 0 { // ends of transactions, or what compaction removed
		l.next[shard] += 1 + r.Int64N(3)
	}
	var b block
	good := b.parse(data) == nil
	sure := l.hosts == 0 && (!good || b.version == firstVersion || b.written <= l.real)
	if good && (!sure || l.broker != 0) {
		for _, c := range b.claims {
			l.unsure[c.owner.Offset] = true
		}
	}
	l.shards[shard] = append(l.shards[shard], modelEntry{Entry: Entry{
		Shard: shard, At: l.next[shard], Epoch: l.epoch,
		Time:  l.real + l.broker + r.Int64N(2*modelJitter) - modelJitter,
		Block: data,
	}, real: l.real, sure: sure,
		right: sure && (l.broker == 0 || l.broker > modelLateness+2*modelJitter)})
	l.next[shard]++
}

// from is what stands at a place and behind it.
func (l *modelLog) from(shard int, place int64) []modelEntry {
	all := l.shards[shard]
	return all[sort.Search(len(all), func(i int) bool { return all[i].At >= place }):]
}

// has tells whether what was read up to a position is in the log as it was, or was retired.
func (l *modelLog) has(shard int, p Position) bool {
	if p.Next <= l.first[shard] {
		return true
	}
	e := l.from(shard, p.Next-1)
	return len(e) > 0 && e[0].At == p.Next-1 && e[0].Epoch == p.Epoch
}

// grow appends a block of one kind or another, as a process does that may have read less than all.
func (l *modelLog) grow(r *rand.Rand, m *machine, ids []modelKey) {
	l.real += r.Int64N(600)
	l.number++
	if l.brief > 0 {
		if l.brief--; l.brief == 0 {
			l.broker, l.hosts = 0, 0
		}
	}
	shard := r.IntN(3)
	k := ids[r.IntN(len(ids))]
	h := head{version: firstVersion, log: l.agreed.ID, id: blockID{1, l.number}, scope: k.scope}
	if l.newest || m.version() == version {
		h.version, h.written = version, l.real+l.hosts-r.Int64N(modelJitter)
	}
	switch n := r.IntN(40); {
	case n < 30:
		if r.IntN(20) == 0 && m.shards[shard].Version == version {
			h.version, h.written = firstVersion, 0 // of a process that has not read as far
		}
		block := l.claims(r, m, shard, k.scope, h, n, ids)
		if r.IntN(8) == 0 {
			l.late = append(l.late, lateBlock{shard, block}) // of a process that stood still
		} else {
			l.append(r, shard, block)
		}
	case n < 33:
		l.append(r, l.agreed.Key.shardOf(k.id, 3), releaseBlock(h, dedup.ID(k.id)))
	case n < 34:
		for shard := range l.shards {
			l.append(r, shard, forgetBlock(h))
		}
	case n < 37 && len(l.late) > 0:
		i := r.IntN(len(l.late))
		if r.IntN(2) == 0 { // one that is so young that it may count
			i = len(l.late) - 1 - r.IntN(min(3, len(l.late)))
		}
		l.append(r, l.late[i].shard, l.late[i].block)
		l.late = slices.Delete(l.late, i, i+1)
	case n < 38: // sent twice, by a client that did not hear
		if last := len(l.shards[shard]) - 1; last >= 0 && len(l.shards[shard][last].Block) > 4 &&
			slices.Contains([]byte{byte(kindClaims), byte(kindImport), byte(kindRenewal)},
				l.shards[shard][last].Block[3]) {
			l.append(r, shard, l.shards[shard][last].Block)
		}
	case n < 39:
		h.log = 77
		l.append(r, shard, claimsBlock(nil, h, time.Hour, sight{},
			[]dedup.Claim{{ID: dedup.ID(k.id)}}, places(1)))
	default:
		l.append(r, shard, []byte("not a block"))
	}
}

// claims is a block of claims, imported ones, or renewals.
func (l *modelLog) claims(
	r *rand.Rand, m *machine, shard int, scope string, h head, n int, ids []modelKey,
) []byte {
	var claims []dedup.Claim
	for _, id := range ids {
		if id.scope == scope && l.agreed.Key.shardOf(id.id, 3) == shard && r.IntN(2) == 0 {
			c := dedup.Claim{ID: dedup.ID(id.id),
				Owner: dedup.Coordinates{Offset: int64(l.number), Partition: r.Int32N(4)}}
			if r.IntN(8) == 0 {
				c.After = time.UnixMilli(l.real + r.Int64N(500))
			}
			claims = append(claims, c)
		}
	}
	free, _, due, err := m.divide(shard, &dedup.Scope{Name: scope, Sliding: n >= 18,
		TTL: modelTTL * time.Second}, claims, places(len(claims)))
	if err != nil {
		panic(err)
	}
	seen, ttl := m.shards[shard].sight(), time.Duration(1+r.IntN(modelTTL))*time.Second
	switch {
	case len(due.at) > 0 && r.IntN(2) == 0:
		return renewalBlock(h, ttl, seen, due.claims, due.lives, places(len(due.at)))
	case n < 8:
		return importBlock(nil, h, seen, claims, l.lives(r, claims), free)
	}
	return claimsBlock(nil, h, ttl, seen, claims, free)
}

// lives are of claims that another store has made; some have ended.
func (l *modelLog) lives(r *rand.Rand, claims []dedup.Claim) []life {
	lives := make([]life, len(claims))
	for i := range lives {
		lives[i] = life{claimed: l.real - r.Int64N(100_000),
			ends: l.real - 1000 + r.Int64N(1000*(1+modelTTL))}
	}
	return lives
}

// harm does to the log what brokers and operators do.
func (l *modelLog) harm(r *rand.Rand) {
	shard := r.IntN(3)
	switch r.IntN(3) {
	case 0:
		n := len(l.shards[shard]) - r.IntN(len(l.shards[shard])+1)
		if n < len(l.shards[shard]) {
			l.next[shard] = l.shards[shard][n].At
		}
		l.shards[shard] = l.shards[shard][:n]
		l.epoch++
	case 1:
		l.id++
		l.epoch, l.late = 0, nil
		for shard := range l.shards {
			l.shards[shard], l.first[shard], l.next[shard] = nil, 0, 0
		}
	case 2:
		l.retire(shard)
	}
}

// retire takes the oldest blocks away, as retention does.
func (l *modelLog) retire(shard int) {
	for len(l.shards[shard]) > 0 && l.shards[shard][0].real < l.real-modelRetention {
		l.first[shard] = l.shards[shard][0].At + 1
		l.shards[shard] = l.shards[shard][1:]
	}
}

// setClocks lets clocks of brokers, or of whole machines, go wrong, or sets them right. What is
// promised then holds for blocks of the present version.
func (l *modelLog) setClocks(r *rand.Rand) {
	wrong := modelLateness + 1000 + r.Int64N(40_000)
	switch l.broker, l.hosts, l.brief = 0, 0, 0; r.IntN(10) {
	case 0:
		l.broker = wrong
	case 1:
		l.broker, l.hosts = wrong, wrong
	case 2:
		l.hosts = wrong
	case 3:
		l.broker = -wrong
	case 4: // a late block looks like a young one
		var b block
		if n := len(l.late); n > 0 && b.parse(l.late[r.IntN(n)].block) == nil && b.written > 0 {
			l.broker = b.written - l.real
		}
	case 5, 6: // the time soon goes back, by so little that blocks from before still count
		l.broker = modelLateness/2 + r.Int64N(modelLateness)
		l.hosts, l.brief = l.broker, 5+r.IntN(20)
	}
}

// modelKey is an ID in a scope.
type modelKey struct{ scope, id string }

// modelClaim is a claim as the log says it, and as it was promised.
type modelClaim struct {
	held
	ends int64
	due  int64 // when it ends in truth; 0: nobody knows, as clocks were wrong
}

// fold is what a shard says, worked out again by the simplest code. A naive one looks at all that
// is there; the other one at what the claimant could not know, as a machine does.
type fold struct {
	naive    bool
	owners   map[modelKey]modelClaim
	changed  map[modelKey]int64 // the place behind the last block that changed its owner
	removals map[string]int64   // by scope, the place behind the last one
	newest   bool
	now      int64
	skew     int64 // of the block in front, if it was skewed
	skewAt   int64
	grace    int64
	last     modelEntry // that moved the time
	times    []modelTime
}

// modelTime is the time of a block, if it has one.
type modelTime struct{ at, now int64 }

// rose reports whether the time rose by more than lateness from a block at a place, or behind it,
// to a later one. The earlier time is known by steps.
func (f *fold) rose(place int64) bool {
	lowest := int64(math.MaxInt64)
	for _, t := range append(f.times, modelTime{math.MaxInt64, f.now}) {
		if t.at < place {
			continue
		}
		if lowest < t.now-modelLateness {
			return true
		}
		lowest = min(lowest, t.now-t.now%(modelLateness/steps))
	}
	return false
}

func newFold(l *modelLog, naive bool) *fold {
	return &fold{naive: naive, owners: make(map[modelKey]modelClaim),
		changed: make(map[modelKey]int64), removals: make(map[string]int64),
		newest: l.agreed.Version > firstAgreement, skewAt: -1}
}

// foldTo is the fold of what stands in front of a place.
func (l *modelLog) foldTo(shard int, place int64) *fold {
	f := newFold(l, l.first[shard] == 0)
	for _, e := range l.shards[shard] {
		if e.At < place {
			f.apply(l, e)
		}
	}
	return f
}

// time tells when a block was written, as far as anybody can know, and whether it counts.
func (f *fold) time(e modelEntry, b *block) (now int64, counts bool) {
	if !f.newest {
		return max(f.now, e.Time), true
	}
	apart, known, knownAt := e.Time-b.written, f.skew, f.skewAt
	f.skew, f.skewAt, f.grace = 0, -1, 0
	switch {
	case apart < -modelLateness:
		f.grace = -apart
		return e.Time, true
	case apart <= modelLateness:
		return e.Time, true
	case known == 0 || apart-known > modelLateness || known-apart > modelLateness:
		f.skew, f.skewAt = apart, e.At
		return f.now, false
	}
	f.skew, f.skewAt = apart, knownAt
	if b.seen.Next <= knownAt {
		return f.now, false
	}
	return e.Time - known, true
}

// apply returns the answers that are told.
func (f *fold) apply(l *modelLog, e modelEntry) (told []dedup.Answer) {
	var b block
	if b.parse(e.Block) != nil || b.log != l.agreed.ID {
		if !f.newest {
			f.now, f.last = max(f.now, e.Time), e
			f.times = append(f.times, modelTime{e.At, e.Time})
		}
		return nil
	}
	if b.version == version {
		f.newest = true
	} else if f.newest {
		return nil
	}
	now, counts := f.time(e, &b)
	if f.now = now; counts {
		f.last = e
	}
	rose := f.rose(b.seen.Next)
	switch {
	case !f.newest:
		f.times = append(f.times, modelTime{e.At, e.Time})
	case counts:
		f.times = append(f.times, modelTime{e.At, now})
	}
	switch b.kind {
	case kindForget:
		f.removals[b.scope] = e.At + 1
		maps.DeleteFunc(f.owners, func(k modelKey, _ modelClaim) bool { return k.scope == b.scope })
		return nil
	case kindRelease:
		f.removals[b.scope] = e.At + 1
		delete(f.owners, modelKey{b.scope, string(b.id)})
		return nil
	}
	late := b.seen.Epoch != e.Epoch || b.seen.Next > e.At ||
		f.now-b.seen.Time > modelLateness || f.newest && rose
	if b.seen.Epoch < 0 {
		late = b.seen.Next != e.At
	}
	early := f.newest && b.seen.Time-now > modelLateness
	removed := f.removals[b.scope] > b.seen.Next && (f.newest || b.kind == kindRenewal)
	if !counts || late || early || removed {
		return nil
	}
	for i := range b.claims {
		var answer dedup.Answer
		var tells bool
		if b.kind == kindRenewal {
			answer, tells = f.renew(e, &b, i)
		} else {
			answer, tells = f.claim(e, &b, i)
		}
		if tells {
			told = append(told, answer)
		}
	}
	return told
}

func (f *fold) claim(e modelEntry, b *block, i int) (answer dedup.Answer, tells bool) {
	c := &b.claims[i]
	k := modelKey{b.scope, string(c.id)}
	owner, known := f.owners[k]
	// What the claimant knew to have ended, or has ended in truth, does not come back.
	holds := known && owner.ends > f.now && (owner.place >= b.seen.Next ||
		f.naive && owner.ends > max(b.seen.Time, e.real))
	if holds {
		return owner.answer(dedup.Exists), true
	}
	if f.newest && f.changed[k] > b.seen.Next && known {
		return answer, false // it has ended since
	}
	mine := modelClaim{held: held{c.owner, c.fingerprint, max(f.now, b.after+1), e.At},
		ends: f.now + f.grace + b.ttl.Milliseconds(), due: e.real + b.ttl.Milliseconds()}
	if b.kind == kindImport {
		mine.claimedAt, mine.ends, mine.due = b.lives[i].claimed, b.lives[i].ends, b.lives[i].ends
	}
	if mine.ends <= f.now {
		return answer, true
	}
	if !e.sure {
		mine.due = 0
	}
	f.owners[k], f.changed[k] = mine, e.At+1
	return mine.answer(dedup.Applied), true
}

func (f *fold) renew(e modelEntry, b *block, i int) (answer dedup.Answer, tells bool) {
	c, life := &b.claims[i], b.lives[i]
	k := modelKey{b.scope, string(c.id)}
	mine := modelClaim{held: held{c.owner, c.fingerprint, life.claimed, e.At},
		ends: max(f.now+f.grace+b.ttl.Milliseconds(), life.ends)}
	owner, known := f.owners[k]
	same := known && owner.owner == mine.owner && owner.claimedAt == mine.claimedAt
	// The naive one knows all, and renews what holds.
	if f.naive && (!same || owner.ends <= f.now) || life.ends <= f.now ||
		f.newest && known && !same && f.changed[k] > b.seen.Next {
		return answer, false
	}
	if same {
		mine.ends = max(mine.ends, owner.ends)
	}
	f.owners[k], f.changed[k] = mine, e.At+1
	return mine.answer(dedup.Exists), true
}

// excused tells of the differences that wrong clocks may make. A claim whose end is too late may
// outlive its block, which a process that begins later does not know. And an index may have
// forgotten what has ended in truth, when the time goes back.
func (l *modelLog) excused(shard int, got, want dedup.Answer, ends int64) bool {
	return l.first[shard] > 0 && l.unsure[got.Owner.Offset] ||
		got == (dedup.Answer{}) && ends <= l.real
}

// promised compares what the log says of an ID with what was promised about its claim.
func (f *fold) promised(k modelKey) error {
	owner, known := f.owners[k]
	if !known || owner.due == 0 || !f.last.right {
		return nil
	}
	const slack = modelLateness + 2*modelJitter
	holds := owner.ends > f.now
	switch {
	case !holds && f.last.real < owner.due-slack:
		return fmt.Errorf("the claim of %v by %+v counts as ended %d ms early", k, owner.owner,
			owner.due-f.last.real)
	case holds && f.last.real > owner.due+slack:
		return fmt.Errorf("the claim of %v by %+v holds %d ms too long", k, owner.owner,
			f.last.real-owner.due)
	}
	return nil
}
