package claimlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// TestStoresWhileSettingsChange has stores claim, import and release the same IDs in one log for
// weeks, while ttl and retention are raised and lowered, brokers drop what they need not keep, and
// processes begin anew, with their index or without one. Each claim holds for as long as it was
// made for, by every store.
func TestStoresWhileSettingsChange(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for i := range uint64(max(1, *modelSteps/settingsShare)) {
		t.Logf("replay with -model.seed=%d -model.steps=1", seed+i)
		synctest.Test(t, func(t *testing.T) { newSettingsModel(t, seed+i).run(settingsSteps) })
	}
}

const (
	settingsSteps = 400
	settingsShare = 8_000 // one run for so many steps of TestModel
)

// settingsTimes are by a clock that does not stand still for the work itself.
var settingsTimes = timing{retry: time.Second, save: 6 * time.Hour, drop: time.Hour,
	settle: time.Hour, stuck: time.Minute}

// settingsModel is the stores, and what was promised.
type settingsModel struct {
	t      *testing.T
	r      *rand.Rand
	logs   *fakeLogs
	scope  dedup.Scope
	stores []*Store
	paths  []string // empty: the index is in memory
	owners map[dedup.ID]promise
	number int64
	// when retention was changed last; brokers look every five minutes
	changed time.Time
}

// promise is a claim that somebody was told of.
type promise struct {
	owner int64
	ends  time.Time
}

func newSettingsModel(t *testing.T, seed uint64) *settingsModel {
	m := &settingsModel{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), logs: newFakeLogs(2), scope: testScope,
		owners: make(map[dedup.ID]promise), paths: []string{"", "", t.TempDir()},
	}
	m.scope.Sliding = m.r.IntN(2) == 0
	m.logs.keeps = m.r.IntN(2) == 0
	m.set(4 * time.Hour)
	for i := range m.paths {
		m.stores = append(m.stores, nil)
		m.open(i)
	}
	return m
}

// set has setup change the ttl, and the retention with it.
func (m *settingsModel) set(ttl time.Duration) {
	m.logs.mu.Lock()
	defer m.logs.mu.Unlock()
	m.scope.TTL, m.changed = ttl, time.Now()
	if !m.logs.keeps {
		m.logs.retention = ttl + Margin
	}
}

// open begins a process that has work at once: from then on it keeps what holds.
func (m *settingsModel) open(i int) {
	m.t.Helper()
	m.stores[i] = Open(Options{Opener: m.logs, Path: m.paths[i], times: settingsTimes})
	m.lookUp(m.stores[i], "id-0")
}

// begin is a process that begins anew, perhaps without its index.
func (m *settingsModel) begin(i int) {
	m.t.Helper()
	if err := m.stores[i].Close(); err != nil {
		m.t.Fatal(err)
	}
	if m.paths[i] != "" && m.r.IntN(2) == 0 {
		if err := os.RemoveAll(m.paths[i]); err != nil {
			m.t.Fatal(err)
		}
	}
	m.open(i)
}

func (m *settingsModel) run(steps int) {
	defer func() {
		for _, s := range m.stores {
			if err := s.Close(); err != nil {
				m.t.Error(err)
			}
		}
	}()
	for range steps {
		s := m.stores[m.r.IntN(len(m.stores))]
		switch n := m.r.IntN(100); {
		case n < 50:
			m.claim(s, m.some())
		case n < 56:
			m.load(s, m.some())
		case n < 62:
			m.release(s, m.some()[0])
		case n < 70:
			m.lookUp(s, m.some()[0])
		case n < 90:
			time.Sleep(time.Duration(m.r.Int64N(int64(m.scope.TTL)))) // of the bubble
			m.retire()
		case n < 95:
			m.set([]time.Duration{30 * time.Minute, time.Hour, 4 * time.Hour,
				20 * time.Hour}[m.r.IntN(4)])
		default:
			m.begin(m.r.IntN(len(m.stores)))
		}
		if m.t.Failed() {
			return
		}
	}
	for id := range 12 {
		for _, s := range m.stores {
			m.claim(s, []dedup.ID{dedup.ID(fmt.Sprint("id-", id))})
		}
	}
}

func (m *settingsModel) some() (ids []dedup.ID) {
	for _, i := range m.r.Perm(12)[:1+m.r.IntN(4)] {
		ids = append(ids, dedup.ID(fmt.Sprint("id-", i)))
	}
	return ids
}

// holds tells of a claim that surely holds, or surely does not. What ends just now may do either.
func (m *settingsModel) holds(id dedup.ID) (p promise, holds, sure bool) {
	p, known := m.owners[id]
	left := time.Until(p.ends)
	return p, known && left > 0, !known || left.Abs() > time.Second
}

func (m *settingsModel) claim(s *Store, ids []dedup.ID) {
	m.t.Helper()
	var claims []dedup.Claim
	for _, id := range ids {
		m.number++
		claims = append(claims, claimOf(string(id), m.number))
	}
	answers, err := s.Claim(m.t.Context(), m.scope, claims)
	if err != nil {
		m.t.Fatal(err)
	}
	for i, a := range answers {
		m.judge("claim", ids[i], claims[i].Owner.Offset, a, time.Now().Add(m.scope.TTL))
	}
}

// judge compares an answer with the promise, and notes a new one.
func (m *settingsModel) judge(
	call string, id dedup.ID, mine int64, a dedup.Answer, ends time.Time,
) {
	m.t.Helper()
	p, holds, sure := m.holds(id)
	switch {
	case a.Outcome == dedup.Applied && a.Owner.Offset == mine:
		if holds && sure {
			m.t.Fatalf("%s of %s: free, and %d owns it for %v", call, id, p.owner,
				time.Until(p.ends))
		}
		m.owners[id] = promise{mine, ends}
	case a.Outcome == dedup.Exists && a.Owner.Offset == p.owner:
		if !holds && sure {
			m.t.Fatalf("%s of %s: owned by %d, whose claim ended %v ago", call, id, p.owner,
				time.Since(p.ends))
		}
		if call == "claim" && m.scope.Sliding && time.Until(p.ends) <= m.scope.DueAt() &&
			ends.After(p.ends) {
			m.owners[id] = promise{p.owner, ends}
		}
	default:
		m.t.Fatalf("%s of %s by %d: %+v, where %d owns it for %v", call, id, mine, a, p.owner,
			time.Until(p.ends))
	}
}

// load imports claims that another store has made, for longer than the ttl maybe.
func (m *settingsModel) load(s *Store, ids []dedup.ID) {
	m.t.Helper()
	var claims []dedup.Standing
	for _, id := range ids {
		m.number++
		c := claimOf(string(id), m.number)
		left := m.scope.TTL
		if m.logs.keeps {
			left = 30 * time.Hour // a log with one retention for all takes none that are longer
		}
		claims = append(claims, dedup.Standing{ID: id, Owner: c.Owner, Fingerprint: c.Fingerprint,
			ClaimedAt: time.Now().Add(-time.Hour),
			Ends:      time.Now().Add(time.Duration(1 + m.r.Int64N(int64(left))))})
	}
	answers, err := s.Import(m.t.Context(), m.scope, claims)
	if err != nil {
		m.t.Fatal(err)
	}
	for i, a := range answers {
		if a.Outcome == dedup.Undecided && time.Until(claims[i].Ends) <= time.Second {
			continue
		}
		m.judge("import", ids[i], claims[i].Owner.Offset, a, claims[i].Ends)
	}
}

func (m *settingsModel) release(s *Store, id dedup.ID) {
	m.t.Helper()
	if err := s.Release(m.t.Context(), m.scope, id); err != nil {
		m.t.Fatal(err)
	}
	delete(m.owners, id)
}

func (m *settingsModel) lookUp(s *Store, id dedup.ID) {
	m.t.Helper()
	a, err := s.Lookup(m.t.Context(), m.scope, id)
	if err != nil {
		m.t.Fatal(err)
	}
	p, holds, sure := m.holds(id)
	if sure && (holds != (a.Outcome == dedup.Exists) || holds && a.Owner.Offset != p.owner) {
		m.t.Fatalf("look-up of %s: %+v, where %d owns it for %v", id, a, p.owner,
			time.Until(p.ends))
	}
}

// retire drops what the log need not keep, or a part of that. Brokers look at a lowered retention
// after a while, and processes every few seconds.
func (m *settingsModel) retire() {
	if time.Since(m.changed) < 2*settingsTimes.drop {
		return
	}
	spared := [2]bool{m.r.IntN(3) == 0, m.r.IntN(3) == 0}
	m.dropWhile(func(e Entry) bool {
		until := time.UnixMilli(e.Ends).Add(-Margin / 2) // readers leave these out before
		if !m.logs.keeps {
			until = time.UnixMilli(e.Time).Add(m.logs.retention)
		}
		return !spared[e.Shard] && !until.After(time.Now())
	})
}

// dropWhile has the log lose the first blocks of each shard for which that holds.
func (m *settingsModel) dropWhile(over func(Entry) bool) {
	for shard, entries := range m.logs.entries(m.scope.ConsumerGroup) {
		stays := slices.IndexFunc(entries, func(e Entry) bool { return !over(e) })
		if stays < 0 {
			stays = len(entries)
		}
		m.logs.retire(m.scope.ConsumerGroup, shard, stays)
	}
}
