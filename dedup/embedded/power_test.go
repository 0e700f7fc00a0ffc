package embedded

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit/powercut"
)

// TestPowerCuts cuts the power at random moments of random work on a store: first start, new
// scopes, claims, releases, sweeps, indexes, merges, forgotten scopes, and opening it again. What
// was answered stands, and the store always opens. A seed replays exactly: KDEDUP_POWER_SEED names
// one, KDEDUP_POWER_CUTS how many cuts it makes.
func TestPowerCuts(t *testing.T) {
	powercut.Seeds(t, 3, 30, func(t *testing.T, random *rand.Rand, cuts int) {
		p := &powerTrial{Trial: powercut.Trial{T: t, Random: random}, now: time.Unix(1_000_000, 0),
			owners: map[powerKey]owners{}}
		for range cuts {
			p.workUntilTheCut()
		}
	})
}

// powerKey is an ID of one scope.
type powerKey struct{ scope, id int }

// owners are who may own an ID: the last one that was answered, and those of calls that were not. 0
// is nobody.
type owners []int64

const (
	powerScopes = 3
	powerIDs    = 200
)

type powerTrial struct {
	powercut.Trial
	store  *Store // nil: not open
	now    time.Time
	offset int64 // of the last claim
	owners map[powerKey]owners

	appends int // since segments were indexed
}

func (p *powerTrial) workUntilTheCut() {
	p.UntilTheCut([]int{15, 100, 500}, p.open, p.step)
	if p.store != nil {
		_ = p.store.Close() // closes its files, and writes nothing any more
		p.store = nil
	}
}

// open opens the store, in a directory whose parents may be missing, and settles who owns what.
func (p *powerTrial) open() (err error) {
	start := p.now
	p.store, err = Open(Options{
		Path: filepath.Join(p.Dir, "var", "lib", "store"), Logger: slog.New(slog.DiscardHandler),
		SweepInterval: -1,
		Now: func() time.Time {
			return p.now
		}, elapsed: func() time.Duration { return p.now.Sub(start) },
		disk: p.Disk, untended: true, segmentBytes: 1 << 10,
	})
	if err != nil {
		return err
	}
	p.appends = 0
	for key, want := range p.owners {
		answer, err := p.store.Lookup(p.T.Context(), powerScope(key.scope), key.claim(0).ID)
		if err != nil {
			return err // what was read waits for a sync that does not come
		}
		got := answer.Owner.Offset
		if !slices.Contains(want, got) {
			p.T.Fatalf("%+v is owned by %d, want one of %d", key, got, want)
		}
		p.owners[key] = owners{got}
	}
	return nil
}

func powerScope(n int) dedup.Scope {
	return dedup.Scope{ConsumerGroup: "g", Name: fmt.Sprint("t", n), TTL: time.Hour, Buckets: 1,
		Extractor: "key"}
}

func (k powerKey) claim(offset int64) dedup.Claim {
	return dedup.Claim{ID: dedup.ID(fmt.Sprint("id-", k.id)),
		Owner: dedup.Coordinates{Offset: offset}}
}

func (p *powerTrial) step() error {
	scope := p.Random.IntN(powerScopes)
	switch n := p.Random.IntN(100); {
	case n < 60:
		return p.claim(scope)
	case n < 65:
		return p.release(powerKey{scope, p.Random.IntN(powerIDs)})
	case n < 70:
		return p.store.Register(p.T.Context(), powerScope(scope))
	case n < 85:
		return p.tend()
	case n < 88:
		p.end()
		return nil
	case n < 94:
		if _, err := p.store.sweep(p.T.Context()); err != nil {
			return err
		}
		return p.tend()
	case n < 96:
		return p.forget(scope)
	default:
		err := p.store.Close()
		p.store = nil
		if err != nil {
			return err
		}
		return p.open()
	}
}

// claim compares the answers with what is known, or, without answers, with nothing.
func (p *powerTrial) claim(scope int) error {
	var keys []powerKey
	var list []dedup.Claim
	for range 1 + p.Random.IntN(10) {
		key := powerKey{scope, p.Random.IntN(powerIDs)}
		if !slices.Contains(keys, key) {
			p.offset++
			keys, list = append(keys, key), append(list, key.claim(p.offset))
		}
	}
	answers, err := p.store.Claim(p.T.Context(), powerScope(scope), list)
	for i, key := range keys {
		known := p.known(key)
		if err != nil {
			if slices.Contains(known, 0) {
				p.owners[key] = append(known, list[i].Owner.Offset)
			}
			continue
		}
		want := known[0]
		if want == 0 {
			want = list[i].Owner.Offset
		}
		if got := answers[i].Owner.Offset; got != want ||
			(answers[i].Outcome == dedup.Applied) != (known[0] == 0) {
			p.T.Fatalf("%+v: %+v, want the owner %d", key, answers[i], want)
		}
		p.owners[key] = owners{want}
	}
	if err != nil {
		return err
	}
	return p.makeRoom()
}

func (p *powerTrial) known(key powerKey) owners {
	if len(p.owners[key]) == 0 {
		return owners{0}
	}
	return p.owners[key]
}

func (p *powerTrial) release(key powerKey) error {
	err := p.store.Release(p.T.Context(), powerScope(key.scope), key.claim(0).ID)
	if err != nil {
		p.owners[key] = append(p.known(key), 0)
		return err
	}
	p.owners[key] = owners{0}
	return p.makeRoom()
}

func (p *powerTrial) forget(scope int) error {
	err := p.store.Forget(p.T.Context(), powerScope(scope))
	for key := range p.owners {
		if key.scope == scope && err == nil {
			p.owners[key] = owners{0}
		} else if key.scope == scope {
			p.owners[key] = append(p.known(key), 0)
		}
	}
	return err
}

// end lets all claims end.
func (p *powerTrial) end() {
	p.now = p.now.Add(61 * time.Minute)
	clear(p.owners)
}

func (p *powerTrial) tend() error {
	p.appends = 0
	for _, state := range p.store.states() {
		if err := state.claims.Tend(p.T.Context()); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom tends the store before an append has to wait for an index.
func (p *powerTrial) makeRoom() error {
	if p.appends++; p.appends < 2 {
		return nil
	}
	return p.tend()
}
