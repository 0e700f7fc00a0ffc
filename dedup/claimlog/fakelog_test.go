package claimlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// fakeLogs are logs in memory that fail as a test tells them.
type fakeLogs struct {
	shards    int
	now       func() time.Time
	retention time.Duration
	keeps     bool // each block for as long as Append is told

	mu       sync.Mutex
	groups   map[string]*fakeGroup
	appended func() fate // nil: all is well
	why      error       // why nothing can be opened, or read on

	beforeNext atomic.Pointer[func()] // called once, before the next block stands
	mute       atomic.Bool            // readers are shown nothing
}

// fate is what becomes of an append.
type fate uint8

const (
	stands     fate = iota
	lost            // it fails, and never comes to stand in the log
	unreported      // it stands, and is reported as failed
)

var errFate = errors.New("the broker's answer was lost")

type fakeGroup struct {
	id     int
	epoch  int32
	shards [][]Entry // the first of each is at first
	first  []int64
	grew   chan struct{}
	values map[string][]byte
}

func newFakeLogs(shards int) *fakeLogs {
	return &fakeLogs{shards: shards, now: time.Now, groups: make(map[string]*fakeGroup)}
}

func (f *fakeLogs) groupLocked(name string) *fakeGroup {
	g := f.groups[name]
	if g == nil {
		g = &fakeGroup{id: 1, shards: make([][]Entry, f.shards), first: make([]int64, f.shards),
			grew: make(chan struct{}), values: map[string][]byte{}}
		f.groups[name] = g
	}
	return g
}

func (f *fakeLogs) wake(g *fakeGroup) {
	close(g.grew)
	g.grew = make(chan struct{})
}

// cut takes the last blocks of a shard away, as an unclean election does.
func (f *fakeLogs) cut(group string, shard, blocks int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groupLocked(group)
	g.shards[shard] = g.shards[shard][:max(0, len(g.shards[shard])-blocks)]
	g.epoch++
	f.wake(g)
}

// retire takes the first blocks of a shard away, as retention does.
func (f *fakeLogs) retire(group string, shard, blocks int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groupLocked(group)
	blocks = min(blocks, len(g.shards[shard]))
	g.shards[shard], g.first[shard] = g.shards[shard][blocks:], g.first[shard]+int64(blocks)
}

// recreate deletes a log and makes a new one, perhaps with its registry.
func (f *fakeLogs) recreate(group string, registryToo bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groupLocked(group)
	g.id, g.epoch, g.shards, g.first = g.id+1, 0, make([][]Entry, f.shards), make([]int64, f.shards)
	if registryToo {
		clear(g.values)
	}
	f.wake(g)
}

func (f *fakeLogs) fail(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
	for _, g := range f.groups {
		f.wake(g)
	}
}

func (f *fakeLogs) entries(group string) (all [][]Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.groupLocked(group).shards {
		all = append(all, append([]Entry(nil), s...))
	}
	return all
}

func (f *fakeLogs) Open(_ context.Context, group string) (Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.why != nil {
		return nil, f.why
	}
	return &fakeLog{f: f, group: group, id: f.groupLocked(group).id}, nil
}

func (f *fakeLogs) Registry(group string) Registry { return fakeRegistry{f, group} }
func (f *fakeLogs) Close() error                   { return nil }

type fakeRegistry struct {
	f     *fakeLogs
	group string
}

func (r fakeRegistry) Decide(ctx context.Context, key string, proposal []byte) ([]byte, error) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	g := r.f.groupLocked(r.group)
	if g.values[key] == nil {
		g.values[key] = proposal
	}
	return g.values[key], ctx.Err()
}

func (r fakeRegistry) Decided(ctx context.Context, key string) ([]byte, error) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	return r.f.groupLocked(r.group).values[key], ctx.Err()
}

func (r fakeRegistry) Withdraw(ctx context.Context, key string) error {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	delete(r.f.groupLocked(r.group).values, key)
	return ctx.Err()
}

type fakeLog struct {
	f     *fakeLogs
	group string
	id    int
}

func (l *fakeLog) ID() string  { return fmt.Sprint(l.id) }
func (l *fakeLog) Shards() int { return l.f.shards }
func (l *fakeLog) Retention() time.Duration {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	return l.f.retention
}
func (l *fakeLog) Close() error { return nil }

func (l *fakeLog) Append(shard int, block []byte, keep time.Duration, done func(error)) {
	if meanwhile := l.f.beforeNext.Swap(nil); meanwhile != nil {
		(*meanwhile)()
	}
	what := l.f.fate()
	if what != stands {
		done(errFate) // before anybody can have read the block
	}
	if what != lost {
		l.f.stand(l.group, shard, block, keep)
	}
	if what == stands {
		done(nil)
	}
}

func (f *fakeLogs) fate() fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.appended == nil {
		return stands
	}
	return f.appended()
}

func (f *fakeLogs) stand(group string, shard int, block []byte, keep time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groupLocked(group)
	ends := int64(0)
	if f.keeps {
		ends = f.now().Add(keep).UnixMilli()
		if there := g.shards[shard]; len(there) > 0 {
			ends = max(ends, there[len(there)-1].Ends)
		}
	}
	g.shards[shard] = append(g.shards[shard], Entry{
		Shard: shard, At: g.first[shard] + int64(len(g.shards[shard])), Epoch: g.epoch,
		Time: f.now().UnixMilli(), Ends: ends, Block: bytes.Clone(block),
	})
	f.wake(g)
}

func (l *fakeLog) Spans(ctx context.Context, read []Position) (spans []Span, err error) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	g := l.f.groupLocked(l.group)
	if g.id != l.id {
		return nil, fmt.Errorf("%w: recreated", ErrCut)
	}
	for i, p := range read {
		if p.Left() {
			spans = append(spans, Span{})
			continue
		}
		span := Span{g.first[i], g.first[i] + int64(len(g.shards[i]))}
		if !g.has(i, p) {
			return nil, fmt.Errorf("%w: shard %d", ErrCut, i)
		}
		spans = append(spans, span)
	}
	return spans, ctx.Err()
}

// has tells whether what was read up to a position is in a shard.
func (g *fakeGroup) has(shard int, p Position) bool {
	last := p.Next - 1 - g.first[shard]
	if p.Epoch < 0 || last < 0 {
		return true
	}
	return last < int64(len(g.shards[shard])) && g.shards[shard][last].Epoch == p.Epoch
}

// Read shows a few entries at a time, of shards in any order.
func (l *fakeLog) Read(ctx context.Context, from []Position, apply func([]Entry) error) error {
	at := append([]Position(nil), from...)
	for {
		entries, grew, err := l.next(at)
		if err != nil {
			return err
		}
		if l.f.mute.Load() {
			entries = nil
		}
		if len(entries) == 0 {
			select {
			case <-grew:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := apply(entries); err != nil {
			return err
		}
		for _, e := range entries {
			at[e.Shard] = Position{e.At + 1, e.Epoch}
		}
	}
}

func (l *fakeLog) next(at []Position) (entries []Entry, grew <-chan struct{}, err error) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	g := l.f.groupLocked(l.group)
	if l.f.why != nil {
		return nil, nil, l.f.why
	}
	if g.id != l.id {
		return nil, nil, fmt.Errorf("%w: recreated", ErrCut)
	}
	for _, shard := range rand.Perm(len(at)) {
		if at[shard].Left() {
			continue
		}
		if !g.has(shard, at[shard]) || at[shard].Next < g.first[shard] {
			return nil, nil, fmt.Errorf("%w: shard %d", ErrCut, shard)
		}
		left := g.shards[shard][at[shard].Next-g.first[shard]:]
		entries = append(entries, left[:rand.IntN(len(left)+1)]...)
	}
	if len(entries) == 0 {
		for shard := range at {
			if at[shard].Left() {
				continue
			}
			entries = append(entries, g.shards[shard][at[shard].Next-g.first[shard]:]...)
		}
	}
	return entries, g.grew, nil
}
