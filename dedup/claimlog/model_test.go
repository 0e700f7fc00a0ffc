package claimlog

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "replay this run of TestModel; 0: others each time")
	modelSteps = flag.Int("model.steps", 3000, "length of a run of TestModel")
)

// modelLog is a log as an array per shard, and what it makes of an ID, worked out again by the
// simplest code.
type modelLog struct {
	agreed agreement
	id     int
	epoch  int32
	first  []int64
	shards [][]Entry
	clock  int64
	number uint64
	late   []lateBlock
}

// lateBlock is one that was written, and does not stand in the log yet.
type lateBlock struct {
	shard int
	block []byte
}

func (l *modelLog) append(shard int, block []byte) {
	l.shards[shard] = append(l.shards[shard], Entry{
		Shard: shard, At: l.first[shard] + int64(len(l.shards[shard])), Epoch: l.epoch,
		Time: l.clock, Block: block,
	})
}

// modelKey is an ID in a scope.
type modelKey struct{ scope, id string }

type modelClaim struct {
	held
	ends int64
}

// fold is what a shard says once its first n blocks are applied, and the answers to the last of
// them. The naive one looks at all that is there; the other one at what the claimant could not
// know, as a machine does.
func (l *modelLog) fold(
	shard, n int, naive bool,
) (owners map[modelKey]modelClaim, now int64, last []dedup.Answer) {
	owners = make(map[modelKey]modelClaim)
	removals := make(map[string]int64) // by scope, the place behind the last one
	for _, e := range l.shards[shard][:n] {
		now, last = max(now, e.Time), nil
		var b block
		if b.parse(e.Block) != nil || b.log != l.agreed.ID {
			continue
		}
		switch b.kind {
		case kindForget:
			removals[b.scope] = e.At + 1
			maps.DeleteFunc(owners, func(k modelKey, _ modelClaim) bool {
				return k.scope == b.scope
			})
		case kindRelease:
			removals[b.scope] = e.At + 1
			delete(owners, modelKey{b.scope, string(b.id)})
		case kindRenewal:
			if !b.seen.reaches(e, now, modelLateness) || removals[b.scope] > b.seen.Next {
				continue
			}
			for i, c := range b.claims {
				k, life := modelKey{b.scope, string(c.id)}, b.lives[i]
				mine := modelClaim{held{c.owner, c.fingerprint, life.claimed, e.At},
					max(now+b.ttl.Milliseconds(), life.ends)}
				owner, known := owners[k]
				same := known && owner.owner == mine.owner && owner.claimedAt == mine.claimedAt
				// The naive one knows all, and renews what holds.
				if naive && (!same || owner.ends <= now) || life.ends <= now {
					continue
				}
				if same {
					mine.ends = max(mine.ends, owner.ends)
				}
				owners[k] = mine
				last = append(last, mine.answer(dedup.Exists))
			}
		case kindClaims, kindImport:
			if !b.seen.reaches(e, now, modelLateness) {
				continue
			}
			for i, c := range b.claims {
				k := modelKey{b.scope, string(c.id)}
				if owner, ok := owners[k]; ok && owner.ends > now &&
					(naive || owner.place >= b.seen.Next) {
					last = append(last, owner.answer(dedup.Exists))
					continue
				}
				mine := modelClaim{held{c.owner, c.fingerprint, max(now, b.after+1), e.At},
					now + b.ttl.Milliseconds()}
				if b.kind == kindImport {
					mine.claimedAt, mine.ends = b.lives[i].claimed, b.lives[i].ends
				}
				if mine.ends <= now {
					last = append(last, dedup.Answer{})
					continue
				}
				owners[k] = mine
				last = append(last, mine.answer(dedup.Applied))
			}
		}
	}
	return owners, now, last
}

// modelProcess is a machine with its index, which may lag, restart, or find its log cut.
type modelProcess struct {
	dir     string // empty: in memory
	index   index
	machine *machine
}

func (p *modelProcess) start(t *testing.T, l *modelLog) {
	t.Helper()
	if p.index == nil {
		p.index = newMemoryIndex()
		if p.dir != "" {
			files, err := openFiles(p.dir, quietLog)
			if err != nil {
				t.Fatal(err)
			}
			p.index = files
		}
	}
	m, err := newMachine(p.index, fmt.Sprint(l.id), l.agreed)
	if err != nil {
		t.Fatal(err)
	}
	m.late = modelLateness
	p.machine = m
	for shard := range m.shards {
		s, ahead := &m.shards[shard], &m.ahead[shard]
		last := ahead.Next - 1 - l.first[shard]
		switch {
		case ahead.Epoch < 0:
			s.Next, ahead.Next = l.first[shard], l.first[shard]
		case s.Next < l.first[shard], last >= int64(len(l.shards[shard])), last >= 0 &&
			l.shards[shard][last].Epoch != ahead.Epoch:
			p.forget(t, l)
			return
		}
	}
}

func (p *modelProcess) forget(t *testing.T, l *modelLog) {
	t.Helper()
	if err := p.index.reset(); err != nil {
		t.Fatal(err)
	}
	p.start(t, l)
}

// read applies some blocks of a shard, and compares every answer with the fold.
func (p *modelProcess) read(t *testing.T, l *modelLog, shard, most int) {
	t.Helper()
	s := &p.machine.shards[shard]
	for ; most > 0; most-- {
		at := int(s.Next - l.first[shard])
		if at >= len(l.shards[shard]) {
			return
		}
		var got []dedup.Answer
		tell := func(_ int, a dedup.Answer) { got = append(got, a) }
		err := p.machine.apply(t.Context(), l.shards[shard][at],
			func(blockID) func(int, dedup.Answer) {
				return tell
			})
		var other otherLogError
		if errors.As(err, &other) {
			p.machine.other[other.id] = true
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _, want := l.fold(shard, at+1, false)
		if want != nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("shard %d, block %d: told %v, the log says %v", shard, at, got, want)
		}
	}
}

// compare asks for every ID that ever was.
func (p *modelProcess) compare(t *testing.T, l *modelLog, ids []modelKey) {
	t.Helper()
	for shard := range l.shards {
		owners, now, _ := l.fold(shard, int(p.machine.shards[shard].Next-l.first[shard]),
			l.first[shard] == 0)
		for _, k := range ids {
			if l.agreed.Key.shardOf(k.id, len(l.shards)) != shard {
				continue
			}
			want := dedup.Answer{}
			if owner, ok := owners[k]; ok && owner.ends > now {
				want = owner.answer(dedup.Exists)
			}
			got, err := p.machine.lookup(shard, k.scope, dedup.ID(k.id), 0)
			if err != nil || got != want {
				t.Fatalf("%v in shard %d: the index says %+v, the log %+v, %v", k, shard, got, want,
					err)
			}
		}
	}
}

// TestModel has several machines, some with files, read one log at their own pace while it grows,
// is cut, loses its beginning, and is made again. At every step the index of each is the fold of
// what it has read.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -model.seed=%d -model.steps=%d", seed, *modelSteps)
	r := rand.New(rand.NewPCG(seed, 0))
	l := &modelLog{agreed: agreement{ID: 1, Shards: 3, Key: hashKey{byte(seed)}}, id: 1,
		first: make([]int64, 3), shards: make([][]Entry, 3), clock: 1000}
	processes := []*modelProcess{{}, {dir: t.TempDir()}, {dir: t.TempDir()}}
	for _, p := range processes {
		p.start(t, l)
	}
	var ids []modelKey
	for _, scope := range []string{"orders", "payments"} {
		for i := range 12 {
			ids = append(ids, modelKey{scope, fmt.Sprint("id-", i)})
		}
	}
	for range *modelSteps {
		p := processes[r.IntN(len(processes))]
		switch n := r.IntN(100); {
		case n < 45:
			l.grow(r, p.machine, ids)
		case n < 80:
			p.read(t, l, r.IntN(3), r.IntN(6)+1)
		case n < 88:
			p.compare(t, l, ids)
		case n < 94: // as the space does it
			saved := p.machine.progress()
			if err := p.index.save(t.Context(), p.index.mark(), saved); err != nil {
				t.Fatal(err)
			}
			if n < 92 {
				break
			}
			if err := p.index.drop(t.Context(), saved.oldest()); err != nil {
				t.Fatal(err)
			}
		case n < 97: // killed: what was applied is in the files, and how far may be older
			if err := p.index.close(); err != nil {
				t.Fatal(err)
			}
			p.index = nil
			p.start(t, l)
			p.catchUp(t, l)
		case n < 98:
			l.harm(r)
			for _, p := range processes {
				p.start(t, l) // each notices
				p.catchUp(t, l)
			}
		}
	}
	for _, p := range processes {
		p.catchUp(t, l)
		p.compare(t, l, ids)
		if err := p.index.close(); err != nil {
			t.Error(err)
		}
	}
}

// catchUp reads to the end without comparing: on the way an index that was ahead of its progress
// answers wrongly, and so it is not asked.
func (p *modelProcess) catchUp(t *testing.T, l *modelLog) {
	t.Helper()
	for shard := range l.shards {
		s := &p.machine.shards[shard]
		for int(s.Next-l.first[shard]) < len(l.shards[shard]) {
			err := p.machine.apply(t.Context(), l.shards[shard][s.Next-l.first[shard]],
				func(blockID) func(int, dedup.Answer) {
					return nil
				})
			var other otherLogError
			if errors.As(err, &other) {
				p.machine.other[other.id] = true
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// grow appends a block of one kind or another, as a process does that may have read less than all.
// Clocks of leaders go forward and back.
func (l *modelLog) grow(r *rand.Rand, m *machine, ids []modelKey) {
	l.clock += int64(r.IntN(800)) - 200
	l.number++
	shard := r.IntN(3)
	k := ids[r.IntN(len(ids))]
	h := head{log: l.agreed.ID, id: blockID{1, l.number}, scope: k.scope}
	switch n := r.IntN(40); {
	case n < 30:
		var claims []dedup.Claim
		for _, id := range ids {
			if id.scope == k.scope && l.agreed.Key.shardOf(id.id, 3) == shard && r.IntN(2) == 0 {
				c := dedup.Claim{ID: dedup.ID(id.id),
					Owner: dedup.Coordinates{Offset: int64(l.number), Partition: r.Int32N(4)}}
				if r.IntN(8) == 0 {
					c.After = time.UnixMilli(l.clock + int64(r.IntN(500)))
				}
				claims = append(claims, c)
			}
		}
		free, _, due, err := m.divide(shard, &dedup.Scope{Name: k.scope, Sliding: n >= 18,
			TTL: modelTTL * time.Second}, claims, places(len(claims)))
		if err != nil {
			panic(err)
		}
		block := claimsBlock(nil, h, time.Duration(1+r.IntN(modelTTL))*time.Second,
			m.shards[shard].sight(), claims, free)
		if n < 8 {
			block = importBlock(nil, h, m.shards[shard].sight(), claims, l.lives(r, claims), free)
		}
		if len(due.at) > 0 && r.IntN(2) == 0 {
			block = renewalBlock(h, time.Duration(1+r.IntN(modelTTL))*time.Second,
				m.shards[shard].sight(), due.claims, due.lives, places(len(due.at)))
		}
		if r.IntN(10) == 0 {
			l.late = append(l.late, lateBlock{shard, block}) // of a process that stood still
		} else {
			l.append(shard, block)
		}
	case n < 33:
		l.append(l.agreed.Key.shardOf(k.id, 3), releaseBlock(h, dedup.ID(k.id)))
	case n < 34:
		for shard := range l.shards {
			l.append(shard, forgetBlock(h))
		}
	case n < 36 && len(l.late) > 0:
		i := r.IntN(len(l.late))
		l.append(l.late[i].shard, l.late[i].block)
		l.late = slices.Delete(l.late, i, i+1)
	case n < 37: // sent twice, by a client that did not hear
		if last := len(l.shards[shard]) - 1; last >= 0 &&
			slices.Contains([]byte{byte(kindClaims), byte(kindImport), byte(kindRenewal)},
				l.shards[shard][last].Block[3]) {
			l.append(shard, l.shards[shard][last].Block)
		}
	case n < 38:
		h.log = 77
		l.append(shard, claimsBlock(nil, h, time.Hour, sight{}, []dedup.Claim{{ID: dedup.ID(k.id)}},
			places(1)))
	default:
		l.append(shard, []byte("not a block"))
	}
}

// lives are of claims that another store has made; some have ended.
func (l *modelLog) lives(r *rand.Rand, claims []dedup.Claim) []life {
	lives := make([]life, len(claims))
	for i := range lives {
		lives[i] = life{claimed: l.clock - int64(r.IntN(100_000)),
			ends: l.clock - 1000 + int64(r.IntN(1000*(1+modelTTL)))}
	}
	return lives
}

// harm does to the log what brokers and operators do.
func (l *modelLog) harm(r *rand.Rand) {
	shard := r.IntN(3)
	switch r.IntN(3) {
	case 0:
		l.shards[shard] = l.shards[shard][:len(l.shards[shard])-r.IntN(len(l.shards[shard])+1)]
		l.epoch++
	case 1:
		l.id++
		l.epoch = 0
		for shard := range l.shards {
			l.shards[shard], l.first[shard] = nil, 0
		}
	case 2:
		l.retire(shard)
	}
}

// The log keeps blocks for longer than the longest ttl and twice the longest lateness.
const (
	modelRetention = 13_000
	modelLateness  = 3_000
	modelTTL       = 6 // seconds
)

// retire takes the oldest blocks away, as retention does.
func (l *modelLog) retire(shard int) {
	now := int64(0)
	for _, e := range l.shards[shard] {
		now = max(now, e.Time)
	}
	for len(l.shards[shard]) > 0 && l.shards[shard][0].Time < now-modelRetention {
		l.shards[shard] = l.shards[shard][1:]
		l.first[shard]++
	}
}
